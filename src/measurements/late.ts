import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { refuseTooMuch } from '../exports/exports.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorQuery,
  cursorText,
  DeviceParams,
  limitQuery,
  linkNext,
  sensesQuery,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import type { Exports } from '../quotas/exports.ts';
import { listMeasuredSenses } from './queries.ts';

/*
 * Which values of a device came late? When such a value arrived, one that was measured later had arrived already, so
 * it was stored and not evaluated. Whether it was shows in when each value arrived; nothing else is stored for this.
 */

/** As in `src/ingest/rules/watermark.ts`: what is further ahead of its arrival says nothing about others. */
const aheadMs = 10_000;

/** Values that one page looks at, and how many are read at once. */
const mostValues = 500_000;
const valuesAtOnce = 20_000;

/** The range without `start`. */
const defaultMs = 31 * 86_400_000;

/** Runs that are listed of a limit. */
const mostRuns = 50;

const Run = z
  .object({
    fromTs: timestamp,
    toTs: timestamp,
    values: z.int().meta({ description: 'How many values it has, also those that came in time.' }),
    late: z.int().meta({ description: 'How many of them came late.' }),
    extreme: z
      .object({ val: z.number(), ts: timestamp })
      .meta({ description: 'The late value furthest beyond the limit.' }),
  })
  .meta({
    id: 'LateRun',
    description:
      'Values beyond the limit without one within it between them, at least one of which came late.',
  });
type Run = z.infer<typeof Run>;

const LateLimit = z
  .object({
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    eventName: z.string(),
    above: z.number().optional(),
    below: z.number().optional(),
    runs: z
      .array(Run)
      .meta({ description: `The oldest ${mostRuns}, in the order of their times.` }),
    moreRuns: z.int().optional().meta({ description: 'How many more there are.' }),
  })
  .meta({ id: 'LateLimit' });
type LateLimit = z.infer<typeof LateLimit>;

const LateSense = z
  .object({
    sId: z.string(),
    values: z.int().meta({ description: 'All values of the range.' }),
    unknown: z.int().meta({
      description:
        'Of how many it is not known when they arrived: they were imported, or stored by a version up to 0.4.0. They ' +
        'are not counted as late.',
    }),
    late: z.int(),
    firstTs: timestamp.optional().meta({ description: 'The oldest and the newest late value.' }),
    lastTs: timestamp.optional(),
    firstArrivedTs: timestamp
      .optional()
      .meta({ description: 'When the first and the last of the late values arrived.' }),
    lastArrivedTs: timestamp.optional(),
    limits: z.array(LateLimit).meta({
      description:
        'The plain limits of the current profile beyond which late values are: of events that open an alarm and have ' +
        'one cause, which compares single values with one number.',
    }),
  })
  .meta({ id: 'LateValues' });
export type LateSense = z.infer<typeof LateSense>;

type Range = { start: number; end: number };
type Series = { seriesId: number; sId: string };

type PointRow = {
  ts: number;
  micros: number;
  /** Null for a position. */
  val: number | null;
  arrived: number | null;
  place: number;
};

/** The values of a series in a range, newest first. */
async function* walkPoints(
  sql: Sql,
  { seriesId }: Series,
  { start, end }: Range,
): AsyncGenerator<PointRow[]> {
  let before = { ts: end + 1, micros: 0 };
  for (;;) {
    const { rows } = await sql.query<PointRow>({
      name: 'late-values',
      text: `
        select m.ts, (extract(microseconds from m.ts)::bigint % 1000)::integer as micros,
               case when m.long = 'NaN' then m.val end as val, m.arrived,
               case when m.nth < 0 then -1 - m.nth else coalesce(m.nth, 0) end as place
          from measurement m
         where m.series_id = $1 and m.ts >= ms_to_timestamp($2)
           and m.ts < ms_to_timestamp($3) + $4::integer * interval '1 microsecond'
         order by m.ts desc
         limit ${valuesAtOnce}`,
      values: [seriesId, start, before.ts, before.micros],
    });
    yield rows;
    const last = rows.at(-1);
    if (!last || rows.length < valuesAtOnce) return;
    before = last;
    await setImmediate();
  }
}

/** When a value arrived: its millisecond, and its place among the device's values of that. */
type Arrived = { arrived: number; place: number };

const isBefore = (one: Arrived, other: Arrived) =>
  one.arrived < other.arrived || (one.arrived === other.arrived && one.place < other.place);

/**
 * The first arrival among the values after a range that are not ahead, if it is before the last arrival in the range;
 * else null.
 */
async function findFirstAfter(
  sql: Sql,
  { seriesId }: Series,
  { start, end }: Range,
): Promise<Arrived | null> {
  const { rows } = await sql.query<Arrived>({
    name: 'late-first-after',
    // What is not ahead and arrived before then was measured no later than that.
    text: `
      with inside as (
        select max(arrived) as arrived from measurement
         where series_id = $1 and ts >= ms_to_timestamp($2) and ts < ms_to_timestamp($3::bigint + 1))
      select arrived, place
        from (select m.arrived, case when m.nth < 0 then -1 - m.nth else coalesce(m.nth, 0) end as place
                from measurement m
               where m.series_id = $1 and m.ts >= ms_to_timestamp($3::bigint + 1)
                 and m.ts <= ms_to_timestamp((select arrived from inside) + ${aheadMs})
                 and m.ts <= ms_to_timestamp(m.arrived + ${aheadMs})
               order by m.ts
               limit ${mostValues}) as after
       order by arrived, place
       limit 1`,
    values: [seriesId, start, end],
  });
  return rows[0] ?? null;
}

/** The planner's estimate was far too low. */
const tooMany = () =>
  new DomainError('invalid-input', 'The request matches more than one answer can hold.', {
    problems: [{ path: '/start', message: `more than ${2 * mostValues} values` }],
  });

/** A value, and whether it came late; null: it is not known when it arrived. */
type Judged = { ts: number; val: number | null; isLate: boolean | null; arrived: number };

/** The values of a series in a range in blocks, newest first. */
async function* judgeSeries(sql: Sql, series: Series, range: Range): AsyncGenerator<Judged[]> {
  // The first arrival among later milliseconds than the one at hand, and of those of that millisecond.
  let first = await findFirstAfter(sql, series, range);
  let own: { ts: number; first: Arrived | null } = { ts: Infinity, first: null };
  let count = 0;
  for await (const rows of walkPoints(sql, series, range)) {
    count += rows.length;
    if (count > 2 * mostValues) throw tooMany();
    const judged: Judged[] = [];
    for (const { ts, val, arrived, place } of rows) {
      if (ts < own.ts) {
        if (own.first && (!first || isBefore(own.first, first))) ({ first } = own);
        own = { ts, first: null };
      }
      if (arrived === null) {
        judged.push({ ts, val, isLate: null, arrived: 0 });
        continue;
      }
      const at = { arrived, place };
      judged.push({ ts, val, isLate: first !== null && isBefore(first, at), arrived });
      if (ts <= arrived + aheadMs && (!own.first || isBefore(at, own.first))) own.first = at;
    }
    yield judged;
  }
}

/** A plain limit: exactly one of `above` and `below` is a number. */
type Limit = {
  sId: string;
  puId: number;
  stId: number;
  evId: number;
  name: string;
  above: number | null;
  below: number | null;
};

async function listLimits(sql: Sql, deviceId: number): Promise<Limit[]> {
  const { rows } = await sql.query<{ limits: Limit[] }>({
    name: 'late-limits',
    text: `
      select c.limits
        from device_profile d
        join profile p on p.id = d.profile_id
        join profile_content c on c.id = p.content_id
       where d.device_id = $1 and d.state = 'current'`,
    values: [deviceId],
  });
  return rows[0]?.limits ?? [];
}

/** Collects the runs of values beyond a limit of which some came late. It is given values newest first. */
class Runs {
  readonly #limit: Limit;
  /** The newest first; the last one may go on. */
  #runs: Run[] = [];
  #more = 0;
  #isOpen = false;

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  take({ ts, val, isLate }: Judged): void {
    if (val === null) return;
    const { above, below } = this.#limit;
    const isBeyond = above === null ? val < (below ?? -Infinity) : val > above;
    if (!isBeyond) {
      this.#close();
      return;
    }
    if (!this.#isOpen)
      this.#runs.push({ fromTs: ts, toTs: ts, values: 0, late: 0, extreme: { val, ts } });
    this.#isOpen = true;
    const run = this.#runs.at(-1) as Run;
    run.fromTs = ts;
    run.values += 1;
    if (isLate !== true) return;
    const isFurther = above === null ? val <= run.extreme.val : val >= run.extreme.val;
    if (run.late === 0 || isFurther) run.extreme = { val, ts };
    run.late += 1;
  }

  #close(): void {
    if (this.#isOpen && this.#runs.at(-1)?.late === 0) this.#runs.pop();
    this.#isOpen = false;
    if (this.#runs.length <= mostRuns) return;
    this.#runs.shift();
    this.#more += 1;
  }

  /** Empty if there is no such run. */
  end(): LateLimit[] {
    this.#close();
    if (this.#runs.length === 0) return [];
    const { puId, stId, evId, name: eventName, above, below } = this.#limit;
    return [
      {
        puId,
        stId,
        evId,
        eventName,
        ...(above === null ? {} : { above }),
        ...(below === null ? {} : { below }),
        runs: this.#runs.toReversed(),
        ...(this.#more > 0 ? { moreRuns: this.#more } : {}),
      },
    ];
  }
}

async function senseOf(
  sId: string,
  blocks: AsyncIterable<Judged[]>,
  limits: readonly Limit[],
): Promise<LateSense> {
  const sense: LateSense = { sId, values: 0, unknown: 0, late: 0, limits: [] };
  const all = limits.filter((limit) => limit.sId === sId).map((limit) => new Runs(limit));
  for await (const values of blocks)
    for (const value of values) {
      const { ts, isLate, arrived } = value;
      sense.values += 1;
      for (const runs of all) runs.take(value);
      if (isLate === null) sense.unknown += 1;
      if (isLate !== true) continue;
      sense.late += 1;
      sense.firstTs = ts;
      sense.lastTs ??= ts;
      sense.firstArrivedTs = Math.min(sense.firstArrivedTs ?? arrived, arrived);
      sense.lastArrivedTs = Math.max(sense.lastArrivedTs ?? arrived, arrived);
    }
  return { ...sense, limits: all.flatMap((runs) => runs.end()) };
}

/** What is said of some senses of a device, one by one. Throws `invalid-input` if they have too many values. */
async function* describeLate(
  sql: Sql,
  deviceId: number,
  senses: readonly Series[],
  range: Range,
): AsyncGenerator<LateSense> {
  const text = `
    select from measurement
     where series_id = any($1::bigint[]) and ts between ms_to_timestamp($2) and ms_to_timestamp($3)`;
  const values = [senses.map(({ seriesId }) => seriesId), range.start, range.end];
  const instead = 'a shorter range or fewer senses';
  await refuseTooMuch(sql, { text, values }, { most: mostValues, what: 'values', instead });
  const limits = await listLimits(sql, deviceId);
  for (const series of senses)
    yield await senseOf(series.sId, judgeSeries(sql, series, range), limits);
}

type LateRouteDeps = {
  db: Sql;
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  exports: Exports;
};

/** Values of a device that came late, and what limits would have marked of them: an addition to the specification. */
export function lateRoute({ db, getDeviceId, exports }: LateRouteDeps): Route {
  return defineRoute({
    name: 'listLateMeasurements',
    scope: 'data:read',
    method: 'get',
    path: '/v2/measurements/{deviceAuthUuid}/late',
    summary: 'Find values that came late',
    description:
      'A value is late if, when it arrived, a value of its sense that was measured later had arrived already. It is ' +
      'stored then, and not compared with any limit. For each sense of the device that has late values, or values of ' +
      'which that is not known: how many, from when until when, when they arrived, and what the limits of its ' +
      'current profile would have marked of them, in whatever state the device was. Without `end` until now, without ' +
      '`start` of the 31 days before `end`. By sense, page by page; a page ' +
      `looks at ${mostValues.toLocaleString('en')} values at most. It counts as an export (the quota \`exports\`).`,
    tag: 'Measurements',
    errors: [400, 401, 404, 503],
    responseHeaders: { Link: 'The next page of senses, if there is one.' },
    auth: 'account',
    answerBytes: 4_194_304,
    params: DeviceParams,
    query: z.strictObject({
      senses: sensesQuery,
      start: timestampQuery.optional(),
      end: timestampQuery.optional(),
      limit: limitQuery(100).meta({ description: 'Senses per page, at most 100.' }),
      cursor: cursorQuery(cursorText),
    }),
    response: z.object({ senses: z.array(LateSense), timestamp }),
    handler: async ({ params, query, account, request }) => {
      const { accountId } = account;
      const { limit, cursor, end = request.now(), start = end - defaultMs } = query;
      const deviceId = await getDeviceId(accountId, params.deviceAuthUuid);
      const wanted = query.senses?.length ? query.senses : undefined;
      const all = await listMeasuredSenses(db, deviceId, wanted);
      // The sense where the page before ended may be gone; they are in the order of their bytes.
      const left =
        cursor === undefined
          ? all
          : all.filter(({ sId }) => Buffer.compare(Buffer.from(sId), Buffer.from(cursor)) > 0);
      const page = left.slice(0, limit);
      const last = page.at(-1);
      if (last && left.length > page.length) linkNext(request, last.sId);
      const found = describeLate(db, deviceId, page, { start, end });
      const senses: LateSense[] = [];
      for await (const sense of await exports.run(accountId, request.signal, found))
        if (sense.late > 0 || sense.unknown > 0) senses.push(sense);
      return { senses, timestamp: request.now() };
    },
  });
}
