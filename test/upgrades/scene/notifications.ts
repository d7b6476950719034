import { call, until } from '../ask.ts';
import type { DeviceKeys } from '../fixture.ts';
import type { Receiver } from '../receiver.ts';
import { asDevice, install, registerDevice, type Site } from './device.ts';
import { bell } from './purposes.ts';

type Outcome = { notificationId: number; state: string; error?: string };

/**
 * The states of ten notifications, with a quota of six SMS. Two pushes, for which there is no driver, share one row
 * with a count; so do the two SMS beyond the quota.
 */
const expected = { sent: 4, failed: 1, queued: 2, 'held-back': 1 };

/**
 * Makes notifications in every state. The receiver accepts the first four texts and then disappears, so two wait
 * after failed attempts.
 */
export async function notify(
  site: Site,
  receiver: Receiver,
): Promise<{ device: DeviceKeys; pId: string; notificationIds: number[] }> {
  const device = await registerDevice(site, 'rings');
  const pId = await install(site, [device.uuid], { purposes: [bell] });
  const list = async () => {
    const path = `/v2/devices/${device.uuid}/notifications`;
    const { token } = site;
    return (await call<{ notifications: Outcome[] }>(site.url, path, { token })).notifications;
  };
  const ring = (val: number) =>
    asDevice(site, device, ({ publish }) => publish('up/measurements', { sId: '0x01', val }));

  await ring(1);
  await until('five notifications settled', async () => {
    const outcomes = await list();
    return outcomes.length === 5 && !outcomes.some(({ state }) => state === 'queued') ? true : null;
  });
  await receiver.close();
  await ring(2);
  const outcomes = await until('what is queued tried', async () => {
    const all = await list();
    const tried = all.filter(({ state, error }) => state === 'queued' && error !== undefined);
    return all.length === 8 && tried.length === expected.queued ? all : null;
  });
  for (const [state, count] of Object.entries(expected)) {
    const found = outcomes.filter((outcome) => outcome.state === state).length;
    if (found !== count) throw new Error(`Expected ${count} ${state}, found ${found}.`);
  }
  const queued = outcomes.filter(({ state }) => state === 'queued');
  return { device, pId, notificationIds: queued.map(({ notificationId }) => notificationId) };
}
