import type { HookReceiver } from '../../support/hook-receiver.ts';
import type { Mail, MailServer } from '../../support/smtp.ts';
import { call, until } from '../ask.ts';
import type { DeviceKeys } from '../fixture.ts';
import { asDevice, install, registerDevice, type Site } from './device.ts';
import { coldRoom } from './purposes.ts';

const hourMs = 3_600_000;

/**
 * E-mail addresses that are confirmed, unconfirmed and unsubscribed; a webhook that is called at once and one that is
 * called after an hour.
 */
export async function addContacts({ url, token }: Site, mail: MailServer, hooks: HookReceiver) {
  const [confirmed, silent, left] = ['told', 'not.confirmed', 'unsubscribed'].map(
    (name) => `${name}@example.org`,
  );
  const body = {
    emails: [
      { address: confirmed, whenOver: true },
      { address: silent },
      { address: left, labels: ['attic'] },
    ],
    webhooks: [
      { url: `${hooks.url}/at-once`, labels: ['cellar'], whenOver: true },
      { url: `${hooks.url}/after-an-hour`, afterMs: hourMs },
    ],
  };
  await call(url, '/v2/accounts/contacts', { method: 'PUT', token, body });
  for (const address of [confirmed, left]) {
    await follow(await mail.mailTo(address ?? ''), 'confirm');
  }
  await call(url, '/v2/accounts/contacts/test', { method: 'POST', token });
  const isTest = ({ text }: Mail) => /\/unsubscribe\?token=/.test(text);
  await follow(await mail.mailTo(left ?? '', isTest), 'unsubscribe');
  await hooks.request();
}

/** Does what the page behind a mail's link does. */
export async function follow({ text }: Mail, page: string): Promise<void> {
  const link = new RegExp(`http://\\S+/${page}\\?token=[\\w-]+`).exec(text)?.[0];
  if (link === undefined) throw new Error(`No link to /${page} in: ${text}`);
  const { status } = await fetch(link, { method: 'POST' });
  if (status !== 200) throw new Error(`${status} from ${link}.`);
}

type Alarms = { alarms: { alarmId: number; state: string; told: string; event: object }[] };

/**
 * Alarms in every state: open, acknowledged, snoozed, closed by a person, and ended by themselves; and a muted
 * device.
 */
export async function raiseAlarms(
  site: Site,
  nowTs: number,
): Promise<{ devices: DeviceKeys[]; pId: string }> {
  const { url, token } = site;
  const room = await registerDevice(site, 'cold room', ['cellar', 'freezer']);
  const muted = await registerDevice(site, 'cold room in repair', ['cellar']);
  const pId = await install(site, [room.uuid, muted.uuid], { purposes: [coldRoom] });
  const list = async () =>
    (await call<Alarms>(url, `/v2/alarms?device=${room.uuid}`, { token })).alarms;
  const change = (method: string, path: string, body?: object) =>
    call(url, path, { method, token, body });

  await asDevice(site, room, async ({ publish }) => {
    for (const sId of ['0x01', '0x02', '0x03', '0x04', '0x05'])
      await publish('up/measurements', { sId, val: 9.5 });
    // Ahead of the service's clock.
    await publish('up/measurements', { sId: '0x06', val: 5, ts: nowTs + 240_000 });
  });
  const raised = await until('five alarms that people were told of', async () => {
    const alarms = await list();
    return alarms.length === 5 && alarms.every(({ told }) => told === 'told') ? alarms : null;
  });
  const [acknowledged, snoozed, closed] = raised.map(({ alarmId }) => `/v2/alarms/${alarmId}`);
  await change('POST', `${acknowledged}/acknowledge`);
  await change('POST', `${snoozed}/snooze`, { untilTs: nowTs + 48 * hourMs, reason: 'on Monday' });
  await change('POST', `${closed}/close`, { note: 'It is being repaired.', force: true });
  await asDevice(site, room, ({ publish }) => publish('up/measurements', { sId: '0x01', val: 4 }));

  const untilTs = nowTs + 72 * hourMs;
  await change('PUT', `/v2/devices/${muted.uuid}/mute`, { untilTs, reason: 'a new door' });
  await asDevice(site, muted, ({ publish }) =>
    publish('up/measurements', { sId: '0x02', val: 11 }),
  );
  const states = ['acknowledged', 'closed', 'closed', 'open', 'open'];
  await until('alarms in every state, and nothing on its way', async () => {
    const found = (await list()).map(({ state }) => state).toSorted();
    const path = `/v2/devices/${room.uuid}/notifications?limit=100`;
    const { notifications } = await call<{ notifications: { state: string }[] }>(url, path, {
      token,
    });
    const isQuiet = !notifications.some(({ state }) => state === 'queued');
    return isQuiet && JSON.stringify(found) === JSON.stringify(states) ? true : null;
  });
  return { devices: [room, muted], pId };
}
