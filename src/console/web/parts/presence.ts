import type { ListedDevice } from '../api/devices.ts';

/** What is known of a device: how it connects, when it was heard, and what it measured last. Times in ms. */
export type Seen = Pick<
  ListedDevice,
  'connected' | 'presence' | 'lastSeenTs' | 'refusedTs' | 'transport'
> & {
  /** When its newest value was measured; null: it has none; absent: not known. */
  valueTs?: number | null | undefined;
  /** How long after the value before. Absent: there is no other, or it is not known. */
  everyMs?: number | undefined;
};

/**
 * - `refused`: its newest login was refused.
 * - `never`: it was added, and has not been heard.
 * - `online`, `no-value`, `sends-nothing`: it is connected, and measures, has measured nothing yet, or nothing for
 *   long.
 * - `asleep`: it is not connected, and its next value is not overdue: it connects to send.
 * - `offline`: it is not connected, and should be, or its next value is overdue.
 * - `to-send`: it has no lasting connection, because it sends over HTTP or through a bridge.
 * - `silent`: the same, but its next value is overdue.
 */
export type Standing =
  | 'refused'
  | 'never'
  | 'online'
  | 'no-value'
  | 'sends-nothing'
  | 'asleep'
  | 'offline'
  | 'to-send'
  | 'silent';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * One value may be lost, and the next one come a little late; but a day without any is long, whatever the rhythm. Two
 * values in one message tell no rhythm, so a minute is the least; without a connection a quarter of an hour.
 */
const overdueMs = (everyMs: number, leastMs: number) =>
  Math.max(leastMs, Math.min(3 * everyMs, everyMs + dayMs));

/** How a device stands at a time: the only place that decides. */
export function standingOf(seen: Seen, nowTs: number): Standing {
  const { connected, presence, lastSeenTs, refusedTs, valueTs, everyMs } = seen;
  if (!connected && refusedTs !== undefined) return 'refused';
  if (connected) return standingOnline(seen, nowTs);
  if (lastSeenTs === null) return 'never';
  // By the later of both: a device whose clock is behind has been heard all the same.
  const heardTs = Math.max(lastSeenTs, valueTs ?? 0);
  const isIntermittent = presence === 'intermittent';
  const leastMs = isIntermittent ? hourMs / 4 : hourMs / 60;
  const isOverdue = everyMs !== undefined && nowTs - heardTs > overdueMs(everyMs, leastMs);
  if (isIntermittent) return isOverdue ? 'silent' : 'to-send';
  return everyMs === undefined || isOverdue ? 'offline' : 'asleep';
}

function standingOnline({ valueTs, everyMs = 0 }: Seen, nowTs: number): Standing {
  if (valueTs === null) return 'no-value';
  const isLong = valueTs !== undefined && nowTs - valueTs > overdueMs(everyMs, hourMs);
  return isLong ? 'sends-nothing' : 'online';
}

type Measured = { ts: number; beforeTs?: number | undefined };

/** When a device's newest value was measured, and how long after the one before. `undefined`: not known yet. */
export function rhythmOf(
  values: readonly Measured[] | undefined,
): Pick<Seen, 'valueTs' | 'everyMs'> {
  if (!values) return {};
  const newest = values.reduce<Measured | null>(
    (last, value) => (last === null || value.ts > last.ts ? value : last),
    null,
  );
  if (newest === null) return { valueTs: null };
  const { ts, beforeTs } = newest;
  return { valueTs: ts, everyMs: beforeTs === undefined ? undefined : ts - beforeTs };
}
