import { CopiedRows, type CopySource } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import type { Profile } from '../engine/compile.ts';
import { hourMs, type PlacedInput } from '../ingest/rules/device-input.ts';
import { Measurements } from './measurements.ts';
import type { Player } from './player.ts';

/** A range of arrivals, ms: from `fromTs` up to and without `untilTs`. */
export type Arrivals = { fromTs: number; untilTs: number };

const dayMs = 86_400_000;

/** What backtests read of devices, by the device's number. */
export type History = {
  /** Whether arrivals came twice in that range, because the clock was set back. */
  hasBreak(deviceId: number, arrivals: Arrivals): Promise<boolean>;
  /** What was measured of these senses in that range, piece by piece. A piece is valid until the next one. */
  walk(
    deviceId: number,
    arrivals: Arrivals,
    senses: readonly string[],
  ): AsyncIterable<Measurements>;
  /** What was recorded of what arrived in that range. */
  listRecorded(
    deviceId: number,
    arrivals: Arrivals,
  ): Promise<{ firings: RecordedFiring[]; alarms: AlarmSpan[] }>;
};

/** The history that the service stores. `mostRows`: of one piece, unless they arrived in one millisecond. */
export const storedHistory = (db: CopySource, mostRows = mostPieceRows): History => ({
  hasBreak: (deviceId, arrivals) => hasBreak(db, deviceId, arrivals),
  walk: (deviceId, arrivals, senses) => walkMeasured(db, { deviceId, arrivals, senses, mostRows }),
  listRecorded: async (deviceId, arrivals) => ({
    firings: await listRecordedFirings(db, deviceId, arrivals),
    alarms: await listRecordedAlarms(db, deviceId, arrivals),
  }),
});

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

/** A sense of a device, and the number of its series. */
type Series = { id: number; sId: string };

/** `senses`: only these; null: all. */
async function listSeries(
  sql: Sql,
  deviceId: number,
  senses: readonly string[] | null,
): Promise<Series[]> {
  const { rows } = await sql.query<Series>({
    name: 'play-series',
    text: `
      select id, s_id as "sId" from series
       where device_id = $1 and ($2::text[] is null or s_id = any($2))
       order by s_id`,
    values: [deviceId, senses],
  });
  return rows;
}

/** One statement reads about this many measurements: as many as its piece of time has. */
const pieceRows = 100_000;
/** What suddenly has more is read in shorter pieces, so that it fits into the memory of its thread. */
const mostPieceRows = 500_000;
const longestPieceMs = 366 * dayMs;
/** After few rows, or none, many may follow. */
const quietPieceMs = 8 * dayMs;
/** Short, so that the first piece of a device that measures a thousand values a second still fits into the memory. */
const firstPieceMs = 900_000;

/**
 * Pieces of a range, each as long as the one before suggests. `read` returns how many rows it had; null: that is too
 * much for one piece. A piece of one millisecond `isShortest`, and has to be read.
 */
async function* walkPieces<T>(
  { fromTs, untilTs }: Arrivals,
  firstMs: number,
  read: (piece: Arrivals, isShortest: boolean) => Promise<{ rows: number; piece: T } | null>,
): AsyncGenerator<T> {
  let lengthMs = firstMs;
  for (let at = fromTs; at < untilTs;) {
    const end = Math.min(untilTs, at + lengthMs);
    const found = await read({ fromTs: at, untilTs: end }, end - at === 1);
    if (!found) {
      lengthMs = Math.ceil((end - at) / 2);
      continue;
    }
    const { rows, piece } = found;
    yield piece;
    at = end;
    const factor = Math.min(16, Math.max(1 / 16, pieceRows / Math.max(1, rows)));
    const mostMs = factor < 16 ? longestPieceMs : Math.max(quietPieceMs, lengthMs);
    lengthMs = Math.min(mostMs, Math.max(1_000, Math.round(lengthMs * factor)));
  }
}

type ReadOptions = {
  /** Only these; null: all. */
  senses: readonly string[] | null;
  /** What has no arrival counts as arrived at its `ts`. */
  withUnknown: boolean;
  /** Of one piece, unless it is of one millisecond. */
  mostRows: number;
};

/** What is read of a device, piece by piece. */
class MeasurementReader {
  readonly #db: CopySource;
  readonly #series: readonly Series[];
  readonly #lateHours: ReadonlyMap<number, number>;
  readonly #withUnknown: boolean;
  readonly #mostRows: number;
  readonly #all = new Measurements();

  private constructor(
    db: CopySource,
    series: readonly Series[],
    lateHours: ReadonlyMap<number, number>,
    { withUnknown, mostRows }: Pick<ReadOptions, 'withUnknown' | 'mostRows'>,
  ) {
    this.#db = db;
    this.#series = series;
    this.#lateHours = lateHours;
    this.#withUnknown = withUnknown;
    this.#mostRows = mostRows;
  }

  static async of(
    db: CopySource,
    deviceId: number,
    { fromTs, untilTs }: Arrivals,
    options: ReadOptions,
  ): Promise<MeasurementReader> {
    const series = await listSeries(db, deviceId, options.senses);
    const lateHours = await listLateHours(db, deviceId, { fromTs, untilTs });
    return new MeasurementReader(db, series, lateHours, options);
  }

  /**
   * The measurements of that range, in the order in which they were evaluated. Valid until the next call. Null if they
   * are too many, or took too long, and the range may be shorter.
   */
  async read(range: Arrivals, isShortest: boolean): Promise<Measurements | null> {
    try {
      const all = await this.#copy(range, isShortest ? null : this.#mostRows + 1);
      return isShortest || all.count <= this.#mostRows ? all : null;
    } catch (error) {
      if (isShortest || kindOf(error) !== 'cancelled') throw error;
      return null;
    }
  }

  async #copy({ fromTs, untilTs }: Arrivals, limit: number | null): Promise<Measurements> {
    const all = this.#all;
    all.clear(this.#series.map(({ sId }) => sId));
    if (this.#series.length === 0) return all;
    const copied = new CopiedRows();
    const numbers = new Map(this.#series.map(({ id }, number) => [id, number]));
    // Bounded by time as well, which finds the chunks. A time may be as far ahead as ingest.maxAheadMs allows.
    // COPY takes no parameters; these are all numbers of ours. The limit stops reading before anything is sorted.
    const statement = `
      copy (
        select * from (
        select series_id, ts, val, long, arrived, nth
          from measurement
         where series_id in (${[...numbers.keys()].join()})
           and ts >= ms_to_timestamp(${oldestOf(this.#lateHours, { fromTs, untilTs })})
           and ts < ms_to_timestamp(${untilTs + dayMs})
           and (arrived >= ${fromTs} and arrived < ${untilTs}
                ${this.#withUnknown ? `or arrived is null and ts >= ms_to_timestamp(${fromTs}) and ts < ms_to_timestamp(${untilTs})` : ''})
         limit ${limit ?? 'all'}) as read
         order by series_id, ts)
      to stdout (format binary)`;
    await this.#db.copyOut(statement, (row) => {
      if (!copied.begin(row)) return;
      const sense = numbers.get(copied.bigint()) as number;
      const at = copied.timestamptz();
      all.add(sense, at, copied.float8(), copied.float8(), copied.bigint(), copied.smallint());
    });
    all.sort();
    return all;
  }
}

/** The hours of that range in which something of the device came late, and the oldest time that did, ms. */
async function listLateHours(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql.query<{ hour: number; oldestTs: number }>({
    name: 'play-late-hours',
    text: `
      select hour, oldest_ts as "oldestTs" from late_arrival
       where device_id = $1 and hour between $2 and $3`,
    values: [deviceId, hourOf(fromTs), hourOf(untilTs)],
  });
  return new Map(rows.map(({ hour, oldestTs }) => [hour, oldestTs]));
}

/** The oldest time that may have arrived in that range, ms. */
function oldestOf(lateHours: ReadonlyMap<number, number>, { fromTs, untilTs }: Arrivals): number {
  let oldestTs = fromTs - hourMs;
  for (const [hour, lateTs] of lateHours)
    if (hour >= hourOf(fromTs) && hour <= hourOf(untilTs)) oldestTs = Math.min(oldestTs, lateTs);
  return oldestTs;
}

const hourOf = (ts: number) => Math.floor(ts / hourMs);

type PlayOptions = {
  deviceId: number;
  arrivals: Arrivals;
  profileOf: (pId: string) => Profile | undefined;
  /** How much is read first, ms of arrivals. */
  pieceMs?: number;
};

/** Gives a player what a device was given in that range, piece by piece. */
export async function playRecorded(
  db: CopySource,
  player: Player,
  { deviceId, arrivals, profileOf, pieceMs = firstPieceMs }: PlayOptions,
): Promise<void> {
  const wanted = { senses: null, withUnknown: false, mostRows: mostPieceRows };
  const reader = await MeasurementReader.of(db, deviceId, arrivals, wanted);
  const pieces = walkPieces(arrivals, pieceMs, async (range, isShortest) => {
    const measurements = await reader.read(range, isShortest);
    if (!measurements) return null;
    const inputs = await listInputs(db, deviceId, range);
    return { rows: inputs.length + measurements.count, piece: { inputs, measurements } };
  });
  for await (const { inputs, measurements } of pieces) {
    let at = 0;
    for (const input of inputs) {
      const end = measurements.endBefore(at, input.arrived, input.nth);
      player.measure(measurements, at, end);
      player.take(input, profileOf);
      at = end;
    }
    player.measure(measurements, at, measurements.count);
  }
}

/** What a device measured in that range, piece by piece, for profiles that were not installed. */
async function* walkMeasured(
  db: CopySource,
  {
    deviceId,
    arrivals,
    ...wanted
  }: { deviceId: number; arrivals: Arrivals } & Omit<ReadOptions, 'withUnknown'>,
): AsyncGenerator<Measurements> {
  const reader = await MeasurementReader.of(db, deviceId, arrivals, {
    ...wanted,
    withUnknown: true,
  });
  yield* walkPieces(arrivals, firstPieceMs, async (range, isShortest) => {
    const piece = await reader.read(range, isShortest);
    return piece && { rows: piece.count, piece };
  });
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

/** The sense events that were recorded of what arrived in that range. Those without an arrival count by their `ts`. */
async function listRecordedFirings(
  sql: Sql,
  deviceId: number,
  { fromTs, untilTs }: Arrivals,
): Promise<RecordedFiring[]> {
  const late = await listLateHours(sql, deviceId, { fromTs, untilTs });
  const { rows } = await sql.query<RecordedFiring>({
    name: 'play-recorded-firings',
    text: `
      select (body->'cause'->'engine'->>'puId')::integer as "puId",
             (body->'cause'->'engine'->>'stId')::integer as "stId",
             (body->'cause'->'engine'->>'evId')::integer as "evId",
             floor(extract(epoch from ts) * 1000)::bigint as ts
        from event
       where device_id = $1 and type = 'sense'
         and ts >= ms_to_timestamp($4) and ts < ms_to_timestamp($3::bigint + ${dayMs})
         and coalesce((body->>'arrivedTs')::bigint, floor(extract(epoch from ts) * 1000)::bigint)
             between $2::bigint and $3::bigint - 1
       order by ts, key
       limit ${mostCompared}`,
    values: [deviceId, fromTs, untilTs, oldestOf(late, { fromTs, untilTs })],
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
