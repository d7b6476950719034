import type { PresenceNotice } from '../bus/bus.ts';
import { startPresence } from '../devices/presence.ts';
import type { PresenceRecorder } from '../devices/presence.ts';
import type { Shared } from './shared.ts';

/** What writes which devices are connected at a connector of this process. */
export async function startPresenceOf(
  shared: Shared,
  connectorId: number,
): Promise<PresenceRecorder> {
  const { db, bus, log, clock, releases } = shared;
  const devicesLog = log.child({ component: 'devices', connectorId });
  const onError = (err: unknown) =>
    devicesLog.warn(
      { event: 'presence.unwritten', err },
      'The connected devices could not be stored; it is tried again.',
    );
  const tell = (accounts: PresenceNotice[]) => bus.publish('presence', { accounts });
  const presence = await startPresence({ db, connectorId, clock, tell, onError });
  releases.add('presence', () => presence.close());
  return presence;
}
