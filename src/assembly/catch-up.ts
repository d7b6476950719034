import { watchOtherProcesses } from '../db/other-processes.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { Shared } from './shared.ts';

/**
 * So long after somebody else was there devices are held to their rates. Short enough for a device to catch up between
 * messages that are few; those who send more often are left alone.
 */
const quietMs = 250;

/**
 * Whether an account's devices may send more than their rates: nobody else wants the machine. That is, within `quietMs`
 * no other account's message was stored here, nor a request or an import of one begun, and no other process kept the
 * database busy. Undefined where devices are never to.
 */
export function startCatchUpOf(
  shared: Shared,
  ingest: Pick<Ingest, 'isAlone'>,
): ((accountId: number) => boolean) | undefined {
  const { config, db, monotonicClock, releases, requests } = shared;
  if (!config.mqtt.catchUp) return undefined;
  const processes = watchOtherProcesses({ db, nowMs: monotonicClock });
  releases.add('watch of other processes', async () => processes.close());
  return (accountId) =>
    ingest.isAlone(accountId, quietMs) &&
    monotonicClock() - requests.than(accountId) > quietMs &&
    !processes.areBusy();
}
