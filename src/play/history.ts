import type { Sql } from '../db/sql.ts';
import type { Profile } from '../engine/compile.ts';
import type { PlacedInput } from '../ingest/rules/device-input.ts';
import type { PlayedMeasurement, Player } from './player.ts';

/** A range of arrivals, ms: from `fromTs` up to and without `untilTs`. */
export type Arrivals = { fromTs: number; untilTs: number };

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

/** What backtests read of devices, by the device's number. */
export type History = {
  /** Whether arrivals came twice in that range, because the clock was set back. */
  hasBreak(deviceId: number, arrivals: Arrivals): Promise<boolean>;
  /**
   * What was measured of these senses in that range, in the order in which it was evaluated, and what is of one arrival
   * together. `isKnown`: whether it is known when it arrived.
   */
  walk(
    deviceId: number,
    arrivals: Arrivals,
    senses: readonly string[],
  ): AsyncIterable<{ measurements: PlayedMeasurement[]; isKnown: boolean }>;
  /** What was recorded of what arrived in that range. */
  listRecorded(
    deviceId: number,
    arrivals: Arrivals,
  ): Promise<{ firings: RecordedFiring[]; alarms: AlarmSpan[] }>;
};

/** The history that the service stores. */
export const storedHistory = (sql: Sql): History => ({
  hasBreak: (deviceId, arrivals) => hasBreak(sql, deviceId, arrivals),
  walk: (deviceId, arrivals, senses) => walkArrivals(sql, deviceId, arrivals, senses),
  listRecorded: async (deviceId, arrivals) => ({
    firings: await listRecordedFirings(sql, deviceId, arrivals),
    alarms: await listRecordedAlarms(sql, deviceId, arrivals),
  }),
});

/** `senses`: only these; null: all. `withUnknown`: what has no arrival counts as arrived at its `ts`. */
type Wanted = { senses: readonly string[] | null; withUnknown: boolean };
type Read = PlayedMeasurement & { isKnown: boolean };

/**
 * A device's measurements in that range, in the order in which they were evaluated. What has no arrival was imported,
 * or an earlier version stored it.
 */
async function listArrived(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
  { senses, withUnknown }: Wanted,
): Promise<Read[]> {
  const { rows } = await sql.query<Read>({
    name: 'play-measurements',
    // Bounded by time as well, which finds the chunks. A time may be as far ahead as ingest.maxAheadMs allows.
    text: `
      select arrived, place, "isStamped", "isKnown", "sId", ts, val, long
        from (
          select coalesce(m.arrived, floor(extract(epoch from m.ts) * 1000)::bigint) as arrived,
                 case when m.nth < 0 then -1 - m.nth else coalesce(m.nth, 0) end as place,
                 coalesce(m.nth < 0, false) as "isStamped", m.arrived is not null as "isKnown",
                 s.s_id as "sId", floor(extract(epoch from m.ts) * 1000)::bigint as ts, m.val,
                 nullif(m.long, 'NaN') as long, m.ts as at
            from series s
            join measurement m on m.series_id = s.id
           where s.device_id = $1 and ($4::text[] is null or s.s_id = any($4))
             and ($5 or m.arrived is not null)
             and m.ts >= ms_to_timestamp(least(
                   $2::bigint - ${hourMs},
                   (select min(oldest_ts) from late_arrival
                     where device_id = $1
                       and hour between $2::bigint / ${hourMs} and $3::bigint / ${hourMs})))
             and m.ts < ms_to_timestamp($3::bigint + ${dayMs})) m
       where arrived >= $2 and arrived < $3
       order by arrived, place, at, "sId"`,
    values: [deviceId, fromTs, untilTs, senses, withUnknown],
  });
  return rows;
}

/** One statement reads about this many measurements: as many as its piece of time has. */
const pieceRows = 20_000;
const longestPieceMs = 31 * dayMs;

/** Pieces of a range, each as long as the one before suggests. `read` returns how many rows it had. */
async function* walkPieces<T>(
  { fromTs, untilTs }: Arrivals,
  firstMs: number,
  read: (piece: Arrivals) => Promise<{ rows: number; piece: T }>,
): AsyncGenerator<T> {
  let lengthMs = firstMs;
  for (let at = fromTs; at < untilTs;) {
    const end = Math.min(untilTs, at + lengthMs);
    const { rows, piece } = await read({ fromTs: at, untilTs: end });
    yield piece;
    at = end;
    const factor = Math.min(4, Math.max(1 / 16, pieceRows / Math.max(1, rows)));
    lengthMs = Math.min(longestPieceMs, Math.max(1_000, Math.round(lengthMs * factor)));
  }
}

type PlayOptions = {
  deviceId: number;
  arrivals: Arrivals;
  profileOf: (pId: string) => Profile | undefined;
  /** How much is read first, ms of arrivals. */
  pieceMs?: number;
};

/** Gives a player what a device was given in that range, piece by piece. */
export async function playRecorded(
  sql: Sql,
  player: Player,
  { deviceId, arrivals, profileOf, pieceMs = dayMs }: PlayOptions,
): Promise<void> {
  const pieces = walkPieces(arrivals, pieceMs, async (range) => {
    const inputs = await listInputs(sql, deviceId, range);
    const wanted = { senses: null, withUnknown: false };
    const measurements = await listArrived(sql, deviceId, range, wanted);
    return { rows: inputs.length + measurements.length, piece: { inputs, measurements } };
  });
  for await (const { inputs, measurements } of pieces) {
    let at = 0;
    const playUpTo = (end: number) => {
      for (const together of inArrivals(measurements, at, end)) player.measure(together);
      at = end;
    };
    for (const input of inputs) {
      const { arrived, nth } = input;
      const isBefore = (one: PlayedMeasurement) =>
        one.arrived < arrived || (one.arrived === arrived && one.place < nth);
      let end = at;
      while (end < measurements.length && isBefore(measurements[end] as PlayedMeasurement))
        end += 1;
      playUpTo(end);
      player.take(input, profileOf);
    }
    playUpTo(measurements.length);
  }
}

/** The measurements from `from` up to `end`, those of one arrival together. */
export function* inArrivals<M extends PlayedMeasurement>(
  all: readonly M[],
  from: number,
  end: number,
): Generator<M[]> {
  for (let at = from; at < end;) {
    const { arrived } = all[at] as M;
    let next = at + 1;
    while (next < end && all[next]?.arrived === arrived) next += 1;
    yield all.slice(at, next);
    at = next;
  }
}

/**
 * What a device measured in that range, those of one arrival together, for profiles that were not installed. `isKnown`:
 * whether it is known when they arrived.
 */
async function* walkArrivals(
  sql: Sql,
  deviceId: number,
  arrivals: Arrivals,
  senses: readonly string[],
): AsyncGenerator<{ measurements: PlayedMeasurement[]; isKnown: boolean }> {
  const pieces = walkPieces(arrivals, dayMs, async (range) => {
    const measurements = await listArrived(sql, deviceId, range, { senses, withUnknown: true });
    return { rows: measurements.length, piece: measurements };
  });
  for await (const piece of pieces)
    for (const measurements of inArrivals(piece, 0, piece.length))
      yield { measurements, isKnown: measurements.every(({ isKnown }) => isKnown) };
}

async function hasBreak(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'play-breaks',
    text: `
      select from device_input
       where device_id = $1 and arrived < $3 and kind = 'break'
         and greatest(arrived, (body->>'lastTs')::bigint) >= $2
       limit 1`,
    values: [deviceId, fromTs, untilTs],
  });
  return rows.length > 0;
}

/** An alarm as it is compared: open if `closedTs` is null. Times in ms. */
type AlarmSpan = {
  puId: number;
  stId: number;
  evId: number;
  sinceTs: number;
  closedTs: number | null;
};

type RecordedFiring = { puId: number; stId: number; evId: number; ts: number };

/** The sense events that were recorded of what arrived in that range. */
async function listRecordedFirings(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<RecordedFiring[]> {
  const { rows } = await sql.query<RecordedFiring>({
    name: 'play-recorded-firings',
    text: `
      select (body->'cause'->'engine'->>'puId')::integer as "puId",
             (body->'cause'->'engine'->>'stId')::integer as "stId",
             (body->'cause'->'engine'->>'evId')::integer as "evId",
             floor(extract(epoch from ts) * 1000)::bigint as ts
        from event
       where device_id = $1 and type = 'sense'
         and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3)
       order by ts, key
       limit ${mostCompared}`,
    values: [deviceId, fromTs, untilTs],
  });
  return rows;
}

/** The alarms of a device that began in that range, by the time of their first firing. */
async function listRecordedAlarms(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<AlarmSpan[]> {
  const { rows } = await sql.query<AlarmSpan>({
    name: 'play-recorded-alarms',
    text: `
      select pu_id as "puId", st_id as "stId", ev_id as "evId", since_at as "sinceTs",
             closed_at as "closedTs"
        from alarm
       where device_id = $1 and since_at >= ms_to_timestamp($2) and since_at < ms_to_timestamp($3)
       order by since_at, id
       limit ${mostCompared}`,
    values: [deviceId, fromTs, untilTs],
  });
  return rows;
}

/** Of one device, so many firings and alarms are compared at most. */
export const mostCompared = 100_000;
