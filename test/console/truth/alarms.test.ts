import { readFile } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Purpose } from '../../../src/contract/purpose.ts';
import type { Registration } from '../../journeys/app.ts';
import { connectDevice } from '../../journeys/device.ts';
import { schema } from '../../support/template.ts';
import { browserPath, findWide } from '../browser.ts';
import { temperature, useWorld } from './world.ts';

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth of alarms', () => {
  const { addDevice, call, open, openOwn, sqlRun, url } = useWorld();

  test('an alarm says what it was about, not what is measured now, and is not closed by mistake', async () => {
    const { uuid, send } = await addDevice('Vault', [temperature]);
    const actions = { alarm: true };
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: 38 } }];
    const events = [{ evId: 1, name: 'too warm', eventLog: true, actions, causes }];
    const purpose = {
      puId: 1,
      name: 'Vault',
      initStId: 1,
      states: [{ stId: 1, name: 'watched', events }],
    };
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
    const beganTs = Date.now() - 3 * 3_600_000;
    const at = (minutes: number, val: number) => ({
      sId: '0x10',
      val,
      ts: beganTs + minutes * 60_000,
    });
    await send(at(-10, 30));
    // It came late, in one message: what counts is when it was measured.
    await send(at(0, 39.5), at(30, 41.5), at(65, 35), at(120, 12));
    const { page, faults } = await open(`alarms?state=closed&device=${uuid}`);
    const card = page.locator('.alarm');
    await card.getByText('up to 41.5\u00a0°C').waitFor();
    const text = await card.innerText();
    expect(text).toContain('Temperature above 38\u00a0°C');
    expect(text).toMatch(/, 1 hr 5 mins/);
    expect(text).not.toContain('12.0');
    const wall = (ts: number) =>
      new Date(ts).toLocaleTimeString('en-GB', {
        timeZone: 'Europe/Berlin',
        hour: '2-digit',
        minute: '2-digit',
      });
    for (const ts of [beganTs, beganTs + 65 * 60_000]) expect(text).toContain(wall(ts));
    // The chart shades that hour, and no other.
    await page.goto(`${url()}/console/devices/${uuid}?range=6h`);
    const shaded = page.locator('.strip-alarm .part');
    await shaded.waitFor();
    const [part, strip] = await Promise.all([
      shaded.boundingBox(),
      page.locator('.strip-alarm').boundingBox(),
    ]);
    expect((part?.width ?? 0) / (strip?.width ?? 1)).toBeCloseTo(65 / 360, 2);

    await send({ sId: '0x10', val: 39.2 });
    await page.locator('.alarm').getByText('now: Temperature 39.2\u00a0°C').waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    const why = page.getByRole('dialog').getByText('It is 39.2\u00a0°C, above 38\u00a0°C.');
    expect(await why.innerText()).toMatch(/ Measured: \d\d:\d\d\. /);
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    type Alarms = { alarms: { state: string }[] };
    const { alarms } = await call<Alarms>('GET', `/v2/alarms?device=${uuid}`);
    expect(alarms.map(({ state }) => state)).toEqual(['open', 'closed']);
    // Closed all the same, with a note; and taken back.
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByLabel('Note (optional)').fill('Sensor in the sun');
    await page.getByRole('button', { name: 'Close anyway' }).click();
    await page.locator('.alarm').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.locator('.alarm').getByText('Sensor in the sun').waitFor();
    const again = await call<Alarms>('GET', `/v2/alarms?device=${uuid}`);
    expect(again.alarms.map(({ state }) => state)).toEqual(['open', 'closed']);
    expect(faults).toEqual([]);
  });

  test('the state of its purpose, silence and a limit that is passed are seen at a glance', async () => {
    const { uuid, send } = await addDevice('Pantry', [temperature]);
    const purpose = JSON.parse(await readFile('examples/cold-room.json', 'utf8')) as Purpose;
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
    const { page, faults } = await open(`devices/${uuid}`);
    // The page knows a profile that is still pending; the first value shows that the device has it.
    const isStream = (type = '') => type.startsWith('text/event-stream');
    const streaming = page.waitForResponse((answer) => isStream(answer.headers()['content-type']));
    await page.reload();
    await streaming;
    await page.getByText('No value yet').waitFor();
    await page.locator('.history .empty').waitFor();
    for (const val of [4, 9, 13.4]) await send({ sId: '0x10', val });
    type One = { device: { state: { stId: number; ts: number } } };
    const { state } = (await call<One>('GET', `/v2/devices/${uuid}`)).device;
    expect(state.stId).toBe(2);
    await page
      .locator('.purpose-state')
      .getByText(/^warm since \d\d:\d\d$/)
      .waitFor();
    await page.locator('.card .beyond').getByText('13.4\u00a0°C').waitFor();
    // Its profile in words: both states, where it stands, when an event fires, and what it does.
    await page.getByRole('link', { name: 'Profile', exact: true }).click();
    const states = page.locator('.purpose-of-state');
    await expect.poll(() => states.count()).toBe(2);
    const [cold, warm] = await states.allInnerTexts();
    expect(cold).toContain('begins here');
    for (const part of [
      'too warm',
      'Temperature above 8\u00a0°C, in 2 of 2 values',
      'Opens an alarm (Warning). Shows “Too warm: close the door” on the device. Moves the device to “warm”. Is recorded.',
    ])
      expect(cold).toContain(part);
    expect(warm).toMatch(/^warm\s*now/);
    expect(warm).toContain('Temperature below 6\u00a0°C, in 2 of 2 values');
    await page.getByText('As JSON').click();
    expect(JSON.parse(await page.locator('.watch-json pre').innerText())).toMatchObject([
      { name: 'Cold room', states: [{ name: 'cold' }, { name: 'warm' }] },
    ]);
    const quiet = {
      device: { name: 'Pantry door' },
      module: [{ moduleId: 'm', senses: [temperature] }],
    };
    const client = await connectDevice(await call<Registration>('POST', '/v2/devices', quiet));
    onTestFinished(() => client.end());
    await page.goto(`${url()}/console/?search=pantry`);
    const row = (name: string) =>
      page
        .locator('.fleet tbody tr')
        .filter({ has: page.getByRole('link', { name, exact: true }) });
    await row('Pantry')
      .getByText(/^too warm, since \d\d:\d\d$/)
      .waitFor();
    await row('Pantry')
      .getByText(/^warm since \d\d:\d\d$/)
      .waitFor();
    await row('Pantry').locator('.beyond').getByText('13.4\u00a0°C').waitFor();
    await row('Pantry door').getByText('Online, no values yet').waitFor();
    expect(await row('Pantry door').locator('.beyond').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('many alarms are rows; those selected are acknowledged and closed in one go', async () => {
    const { own, page, faults } = await openOwn('alarms');
    // Nothing is quiet where nobody listens.
    await page.getByText('Nothing is being watched').waitFor();
    const devices = Array.from({ length: 12 }, (_, place) => ({
      protocol: 'http',
      device: { name: `Freezer ${place + 10}` },
      module: [{ moduleId: 'm', senses: [temperature] }],
    }));
    type Batch = { devices: Registration[] };
    const batch = await own<Batch>('POST', '/v2/devices/batch', { devices });
    const deviceAuthUuids = batch.devices.map((each) => each.deviceAuthUuid);
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: -15 } }];
    const events = [
      { evId: 1, name: 'too warm', eventLog: true, actions: { alarm: true }, causes },
    ];
    const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }];
    await own('POST', '/v2/devices/profile', {
      deviceAuthUuids: deviceAuthUuids.slice(1),
      purposes,
    });
    await page.reload();
    // None of them has taken its profile yet, so nothing is watched.
    await page.getByText('11 devices have not accepted their new profile yet').waitFor();
    await page.getByText('Nothing is being watched').waitFor();
    const watched = batch.devices.slice(1);
    const sendAll = async (valueOf: (place: number) => number) => {
      for (const [place, { deviceAuthUuid, deviceAuthToken }] of watched.entries())
        await fetch(`${url()}/devices/${deviceAuthUuid}/up/measurements`, {
          method: 'POST',
          headers: {
            Authorization: `Bearer ${deviceAuthToken}`,
            'Content-Type': 'application/json',
          },
          body: JSON.stringify({ sId: '0x10', val: valueOf(place) }),
        });
    };
    await sendAll(() => -20);
    await page.reload();
    await page.getByText('All quiet').waitFor();
    await page.getByText('The profiles of 11 devices watch their values').waitFor();
    await page.getByRole('link', { name: '1 device has no limits' }).click();
    await page.getByText('1 to 1 of 1').waitFor();
    await page.getByRole('link', { name: 'Freezer 10', exact: true }).waitFor();
    await page.getByText('Without a profile').waitFor();
    await page.goBack();
    await sendAll((place) => -11.5 - place / 10);
    const rows = page.locator('.alarm-row');
    await expect.poll(() => rows.count()).toBe(11);
    await expect.poll(() => page.getByRole('link', { name: /^Open/ }).innerText()).toContain('11');
    for (const row of await rows.all()) {
      const { height = 0 } = (await row.boundingBox()) ?? {};
      expect(height).toBeGreaterThanOrEqual(36);
      expect(height).toBeLessThanOrEqual(44);
    }
    await rows.filter({ hasText: 'Freezer 13' }).getByText('up to -11.7\u00a0°C').waitFor();
    await page.getByRole('searchbox').fill('freezer 13');
    await expect.poll(() => page.locator('.alarm').count()).toBe(1);
    await expect.poll(() => page.getByRole('link', { name: /^Open/ }).innerText()).toMatch(/\n1$/);
    await page.getByRole('searchbox').fill('');
    await page.getByRole('combobox', { name: 'Groups' }).selectOption('By event');
    await page.locator('.alarm-group').getByText('11').waitFor();
    await page.getByRole('combobox', { name: 'Groups' }).selectOption('No groups');
    await rows.nth(10).waitFor();
    await page.getByLabel('Select this page').check();
    const bar = page.locator('.selection');
    await bar.getByText('11 selected').waitFor();
    await bar.getByRole('button', { name: 'Acknowledge', exact: true }).click();
    // Nothing is done before somebody has read how many, how bad, and how many are not over.
    const asking = page.getByRole('dialog', { name: 'Acknowledge 11 alarms?' });
    await asking.getByText('Warning: 11. 11 of them are not over.').waitFor();
    await asking.getByLabel('Note').fill('A power cut.');
    await asking.getByRole('button', { name: 'Acknowledge' }).click();
    await page.getByText('Acknowledged: 11 alarms').waitFor();
    type Alarms = { alarms: { state: string; notes: { text: string }[] }[] };
    const states = async () =>
      (await own<Alarms>('GET', '/v2/alarms?limit=50')).alarms.map(({ state }) => state);
    expect(new Set(await states())).toEqual(new Set(['acknowledged']));
    await page.getByRole('link', { name: 'Show acknowledged alarms' }).click();
    await rows.nth(10).waitFor();
    // A note later, too.
    await rows.filter({ hasText: 'Freezer 15' }).getByRole('button').click();
    await page.getByRole('button', { name: 'Add a note' }).click();
    const noting = page.getByRole('dialog', { name: 'Add a note' });
    // Nothing is stored where nothing is written.
    await noting.getByRole('button', { name: 'Add a note' }).click();
    await noting.getByLabel('Note').fill('Fuse 7.');
    await noting.getByRole('button', { name: 'Add a note' }).click();
    await page.getByText('The note is stored.').waitFor();
    const { alarms: noted } = await own<Alarms>('GET', '/v2/alarms?search=freezer%2015');
    expect(noted[0]?.notes.map(({ text }) => text)).toEqual(['A power cut.', 'Fuse 7.']);
    await rows.filter({ hasText: 'Freezer 15' }).getByRole('button').click();
    const closeOne = async (said = '') => {
      await page.getByLabel('Select too warm, Freezer 12').check();
      await bar.getByRole('button', { name: 'Close' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(said).first().waitFor();
      await dialog.getByLabel('Also close alarms that are not over').check();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await expect.poll(() => rows.count()).toBe(10);
    };
    // What has left the list is not selected any more, also if it comes back.
    await page.getByLabel('Select this page').check();
    await bar.getByText('11 selected').waitFor();
    type Found = { alarms: { alarmId: number }[] };
    const { alarms: found } = await own<Found>('GET', '/v2/alarms?search=freezer%2014');
    const gone = `/v2/alarms/${found[0]?.alarmId}`;
    await own('POST', `${gone}/close`, { force: true });
    await bar.getByText('10 selected').waitFor();
    await own('POST', `${gone}/reopen`);
    await expect.poll(() => rows.count()).toBe(11);
    await bar.getByText('10 selected').waitFor();
    // None is over, so none is closed; which value keeps it open is said of each.
    await page.getByLabel('Select this page').check();
    await bar.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('dialog').getByText('11 of them are not over.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.getByText('11 alarms did not change').click();
    const failure = page.locator('.failures li', { hasText: 'Freezer 13' });
    await failure.getByText('too warm', { exact: true }).waitFor();
    await failure
      .getByText(/not over, so it stays open\. Temperature -11\.7\u00a0°C \(\d\d:\d\d\)/)
      .waitFor();
    // However many failed.
    expect(asked.filter((path) => /^.v2.devices.[0-9a-f]{8}-/.test(path))).toEqual([]);
    const ofValues = asked.filter((path) => path.startsWith('/v2/measurements/latest'));
    expect(ofValues.length).toBeLessThan(4);
    expect(await rows.count()).toBe(11);
    await closeOne('1 of them is not over.');
    await page
      .locator('.job', { hasText: 'Closed: 1 alarm' })
      .getByRole('button', { name: 'Undo' })
      .click();
    await expect.poll(() => rows.count()).toBe(11);
    await closeOne();
    expect((await states()).filter((state) => state === 'closed')).toHaveLength(1);
    // Fewer than five alarms stay rows, and nothing that somebody types goes while they close.
    const act = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await rows.filter({ hasText: 'Freezer 20' }).getByRole('button').click();
    await act('Snooze');
    await page.getByRole('dialog').getByLabel('Reason').fill('being defrosted');
    const { alarms: listed } = await own<{
      alarms: { alarmId: number; deviceName: string; state: string }[];
    }>('GET', '/v2/alarms?limit=50');
    for (const { alarmId, deviceName, state } of listed)
      if (state !== 'closed' && !/20|21/.test(deviceName))
        await own('POST', `/v2/alarms/${alarmId}/close`, { force: true });
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.getByRole('dialog').getByLabel('Reason').inputValue()).toBe(
      'being defrosted',
    );
    await act('Cancel');
    // What is said next does not take the way back away.
    await act('Close');
    await act('Close anyway');
    await expect.poll(() => rows.count()).toBe(1);
    await rows.filter({ hasText: 'Freezer 21' }).getByRole('button').click();
    await act('Mute device');
    await page.getByRole('dialog').getByRole('button', { name: 'Mute device' }).click();
    await page.getByText('The device is muted.').waitFor();
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    for (const width of [320, 768, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      expect([width, await findWide(page)]).toEqual([width, []]);
    }
    expect(faults).toEqual([]);
  });

  test('a device has all its alarms, however many newer ones others have, and says how many more', async () => {
    const { own, page, faults } = await openOwn('alarms');
    const add = (name: string) =>
      own<Registration>('POST', '/v2/devices', {
        protocol: 'http',
        device: { name },
        module: [{ moduleId: 'm', senses: [temperature] }],
      });
    const [old, busy] = [await add('Old'), await add('Busy')];
    const insert = (uuid: string, count: number, hoursAgo: number, acknowledged: boolean) =>
      sqlRun(
        `insert into ${schema}.alarm
           (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
            since_at, last_firing_at, began_at, event, actions, s_ids, event_name, acknowledged_at)
         select d.account_id, d.id, d.uuid, 'p', 1, 1, n, 'silent-alarm', false, false, now(), now(),
                now() - $3 * interval '1 hour', '{}', '{}', '{}', 'event ' || n,
                case when $4 then now() end
           from ${schema}.device d, generate_series(1, $2::integer) n
          where d.uuid = $1`,
        [uuid, count, hoursAgo, acknowledged],
      );
    await insert(old.deviceAuthUuid, 1, 30, false);
    await insert(busy.deviceAuthUuid, 130, 1, false);
    await sqlRun(`update ${schema}.alarm set ev_id = ev_id + 1000 where device_uuid = $1`, [
      old.deviceAuthUuid,
    ]);
    await insert(old.deviceAuthUuid, 1, 20, true);
    await page.goto(`${url()}/console/`);
    const row = (name: string) =>
      page
        .locator('.fleet tbody tr')
        .filter({ has: page.getByRole('link', { name, exact: true }) });
    // Named, counted with those acknowledged, and by when it began: yesterday, so with its day.
    await row('Old')
      .getByText(/^event 1 and 1 more, the oldest since \d+ \w+/)
      .waitFor();
    await row('Busy')
      .getByText(/^event 1 and 129 more, the oldest since/)
      .waitFor();
    await row('Old').getByRole('link', { name: 'Old', exact: true }).click();
    await expect.poll(() => page.locator('.alarm').count()).toBe(2);
    await page
      .locator('.alarm')
      .getByText(/Acknowledged at/)
      .waitFor();
    await page.goto(`${url()}/console/devices/${busy.deviceAuthUuid}`);
    await page.getByRole('link', { name: '30 more alarms of this device' }).waitFor();
    expect(await page.locator('.alarm').count()).toBe(100);
    // Closed, and nobody recorded when it was over: it says so, with its day, and no duration.
    await sqlRun(
      `update ${schema}.alarm set closed_at = now(), closed_by = 'cleared' where device_uuid = $1`,
      [busy.deviceAuthUuid],
    );
    await page.goto(`${url()}/console/alarms?state=closed`);
    const time = page.locator('.alarm-row-time').first();
    await time.getByText(/^.+ · end not recorded$/).waitFor();
    expect(faults).toEqual([]);
  });
});
