import type { AlarmSignal, FiredSignal } from '../../src/contract/alarm.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Sql } from '../../src/db/sql.ts';

/** An event that people are notified of, with the actions of its purpose. */
export type Ringing = Pick<Fired, 'device' | 'event' | 'name' | 'actions'>;

type Fired = FiredSignal & { device: DeviceIdentity };

/**
 * The firings that people are notified of: fresh ones, the first of each episode, all notices, and reported events that
 * are not stored yet. Marks the other events as notifying nobody.
 */
export async function ringsOf(tx: Sql, signals: readonly AlarmSignal[]): Promise<Ringing[]> {
  const fired = signals.filter((one) => one.kind === 'fired');
  const reported = fired.filter(({ reportKey }) => reportKey !== undefined);
  const seen = reported.length > 0 ? await listStored(tx, reported) : new Set<string>();
  return fired.filter((one) => {
    const { event, reportKey, tells, isFresh, isFirst } = one;
    const name = nameOf(one);
    const concernsPeople = tells !== 'silent-alarm';
    const isRinging = isFresh && (isFirst || tells === 'notice') && concernsPeople;
    if (reportKey === undefined && !isRinging && concernsPeople) event.notified = false;
    if (reportKey === undefined) return isRinging;
    const isAgain = seen.has(name);
    seen.add(name);
    return isRinging && !isAgain;
  });
}

async function listStored(tx: Sql, reported: Fired[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ device_id: number; ts: number; key: string }>({
    name: 'reported-before',
    text: `
      select e.device_id, e.ts, e.key
        from unnest($1::bigint[], $2::bigint[], $3::text[]) as g (device_id, ms, key)
        join event e
          on e.device_id = g.device_id and e.type = 'sense'
         and e.ts = ms_to_timestamp(g.ms) and e.key = g.key`,
    values: [
      reported.map(({ device }) => device.deviceId),
      reported.map(({ event }) => event.ts),
      reported.map(({ reportKey }) => reportKey),
    ],
  });
  return new Set(rows.map(({ device_id, ts, key }) => `${device_id} ${ts} ${key}`));
}

const nameOf = ({ device, event, reportKey }: Fired) =>
  `${device.deviceId} ${event.ts} ${reportKey}`;
