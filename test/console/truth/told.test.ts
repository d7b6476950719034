import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Registration } from '../../journeys/app.ts';
import { browserPath } from '../browser.ts';
import { temperature, useWorld } from './world.ts';

// Above the list of alarms: who was notified of how many, against what is stored. Needs Chromium.
describe.skipIf(browserPath === null)('the console says who knows of the open alarms', () => {
  const { openOwn, sqlRun, url } = useWorld();

  test('how many each was told of, who waits for a summary until when, and who is not told and why', async () => {
    const { own, page, faults } = await openOwn('alarms');
    const actions = { cloud: { sendPush: true } };
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: 38 } }];
    const purpose = {
      puId: 1,
      name: 'Vault',
      initStId: 1,
      states: [{ stId: 1, events: [{ evId: 1, name: 'too warm', actions, causes }] }],
    };
    const openAlarm = async (name: string) => {
      const module = [{ moduleId: 'm', senses: [temperature] }];
      const body = { protocol: 'http', device: { name }, module };
      const device = await own<Registration>('POST', '/v2/devices', body);
      const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
      const profile = { deviceAuthUuids: [uuid], purposes: [purpose] };
      await own('POST', '/v2/devices/profile', profile);
      const answer = await fetch(`${url()}/devices/${uuid}/up/measurements`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify([{ sId: '0x10', val: 40 }]),
      });
      expect(answer.status).toBe(200);
    };
    const told = page.getByRole('list', { name: 'Who was notified' });
    await openAlarm(`Cellar ${randomUUID()}`);
    await told.getByText(/^1 alarm: Nobody was notified, because/).waitFor();
    await told.getByRole('link', { name: 'Notifications' }).waitFor();

    // Two people, and their messages as they stand in a flood: of seven alarms six are sent, or wait for a summary.
    for (let n = 0; n < 6; n += 1) await openAlarm(`Vault ${n}`);
    type Alarms = { alarms: { alarmId: number; deviceName: string }[] };
    const { alarms } = await own<Alarms>('GET', '/v2/alarms?state=open&limit=100');
    const ids = alarms
      .map(({ alarmId }) => alarmId)
      .toSorted((a, b) => a - b)
      .slice(1);
    const { rows: contacts } = await sqlRun(
      `insert into contact (account_id, kind, address, address_normal, place, confirmed_at, gathers_until)
       select account_id, 'email', address, address, 0, now(), now() + interval '1 minute'
         from alarm cross join unnest(array['someone@example.org', 'used-up@example.com']) as a (address)
        where id = $1 returning id, account_id`,
      [ids[0]],
    );
    const [someone, usedUp] = contacts as { id: number; account_id: number }[];
    await sqlRun(
      `insert into notification (account_id, device_id, kind, type, contact_id, recipient, title, body, alarm_id,
                                 announcement, state, due_at)
       select account_id, device_id, 'email', 'opened', $2, 'someone@example.org', '', '', id, announcement,
              case when id <= $3 then 'sent' else 'queued' end, now() + interval '1 hour'
         from alarm where id = any($1)`,
      [ids, someone?.id, ids[1]],
    );
    await sqlRun(`update alarm set told = 'told', not_notified = null where id = any($1)`, [ids]);
    await sqlRun(
      `insert into message_count (kind, account_id, key, day, used)
       values ('recipient', $1, 'used-up@example.com', (now() at time zone 'UTC')::date, 1000000)`,
      [usedUp?.account_id],
    );
    await page.reload();
    const first = told.getByText('E-mail to s…\u2060@example.org');
    expect(await first.innerText()).toMatch(
      /: notified of 2; 4 wait for a summary at \d\d:\d\d\.$/,
    );
    const other = told.getByText('E-mail to u…\u2060@example.com');
    expect(await other.innerText()).toMatch(
      /: not notified of 6, because the messages of the day are used up until .*\d\d:\d\d\. Usage$/,
    );
    expect(faults).toEqual([]);
  });
});
