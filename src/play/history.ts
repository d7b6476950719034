import type { Sql } from '../db/sql.ts';
import type { Profile } from '../engine/compile.ts';
import type { PlacedInput } from '../ingest/rules/device-input.ts';
import type { PlayedMeasurement, Player } from './player.ts';

/** A range of arrivals, ms: from `fromTs` up to and without `untilTs`. */
type Arrivals = { fromTs: number; untilTs: number };

const hourMs = 3_600_000;
const dayMs = 86_400_000;

/** A device's inputs in that range, in their order. */
async function listInputs(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<PlacedInput[]> {
  const { rows } = await sql.query<PlacedInput>({
    name: 'play-inputs',
    text: `
      select device_id as "deviceId", arrived, nth, kind, body
        from device_input
       where device_id = $1 and arrived >= $2 and arrived < $3
       order by arrived, nth`,
    values: [deviceId, fromTs, untilTs],
  });
  return rows;
}

/**
 * A device's measurements in that range, in the order in which they were evaluated. What has no arrival is left out: it
 * was imported, or an earlier version stored it.
 */
async function listArrived(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<PlayedMeasurement[]> {
  const { rows } = await sql.query<PlayedMeasurement>({
    name: 'play-measurements',
    // Bounded by time as well, which finds the chunks. A time may be as far ahead as ingest.maxAheadMs allows.
    text: `
      select m.arrived, case when m.nth < 0 then -1 - m.nth else coalesce(m.nth, 0) end as place,
             coalesce(m.nth < 0, false) as "isStamped", s.s_id as "sId",
             floor(extract(epoch from m.ts) * 1000)::bigint as ts, m.val,
             nullif(m.long, 'NaN') as long
        from series s
        join measurement m on m.series_id = s.id
       where s.device_id = $1 and m.arrived >= $2 and m.arrived < $3
         and m.ts >= ms_to_timestamp(least(
               $2::bigint - ${hourMs},
               (select min(oldest_ts) from late_arrival
                 where device_id = $1 and hour between $2::bigint / ${hourMs} and $3::bigint / ${hourMs})))
         and m.ts < ms_to_timestamp($3::bigint + ${dayMs})
       order by m.arrived, place`,
    values: [deviceId, fromTs, untilTs],
  });
  return rows;
}

type PlayOptions = {
  deviceId: number;
  arrivals: Arrivals;
  profileOf: (pId: string) => Profile | undefined;
  /** How much is read at once, ms of arrivals. */
  pieceMs?: number;
};

/** Gives a player what a device was given in that range, piece by piece. */
export async function playRecorded(
  sql: Sql,
  player: Player,
  { deviceId, arrivals, profileOf, pieceMs = dayMs }: PlayOptions,
): Promise<void> {
  for (let fromTs = arrivals.fromTs; fromTs < arrivals.untilTs; fromTs += pieceMs) {
    const piece = { fromTs, untilTs: Math.min(arrivals.untilTs, fromTs + pieceMs) };
    const inputs = await listInputs(sql, deviceId, piece);
    const measurements = await listArrived(sql, deviceId, piece);
    playPiece(player, inputs, measurements, profileOf);
  }
}

/** Both are in order. Measurements of one arrival without an input between them are given together. */
function playPiece(
  player: Player,
  inputs: readonly PlacedInput[],
  measurements: readonly PlayedMeasurement[],
  profileOf: PlayOptions['profileOf'],
): void {
  let at = 0;
  const playUpTo = (isBefore: (one: PlayedMeasurement) => boolean) => {
    while (at < measurements.length) {
      const first = measurements[at] as PlayedMeasurement;
      let end = at;
      for (; end < measurements.length; end += 1) {
        const one = measurements[end] as PlayedMeasurement;
        if (one.arrived !== first.arrived || !isBefore(one)) break;
      }
      if (end === at) return;
      player.measure(measurements.slice(at, end));
      at = end;
    }
  };
  for (const input of inputs) {
    const { arrived, nth } = input;
    playUpTo((one) => one.arrived < arrived || (one.arrived === arrived && one.place < nth));
    player.take(input, profileOf);
  }
  playUpTo(() => true);
}
