import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import { listEvents, type ListedRange } from '../../src/events/store.ts';
import {
  listMeasuredSenses,
  listMeasurements,
  walkBuckets,
} from '../../src/measurements/queries.ts';
import { findNewest } from '../../src/measurements/store.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { openClient } from '../support/template.ts';

const day = 86_400_000;
// Noon yesterday: whatever the time is, the newest of a sense shares its day's chunk with the others.
const now = Math.floor(Date.now() / day) * day - day / 2;
const devices = 20;
const deviceId = 7;

/** A node of `explain (analyze, format json)`; only the members that are used here. */
type Node = {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  Plans?: Node[];
};

const historyTable =
  /^(measurement|event|event_sense|_hyper_\d+_\d+_chunk|compress_hyper_\d+_\d+_chunk)$/;

/** Chunks in the plan, read or not. */
function chunksOf(node: Node): string[] {
  const name = node['Relation Name'] ?? '';
  return [...(name.startsWith('_hyper') ? [name] : []), ...(node.Plans ?? []).flatMap(chunksOf)];
}

/** Scans of the history that were executed; excluded or unreached chunks were not. */
function scansOf(node: Node): Node[] {
  const below = (node.Plans ?? []).flatMap(scansOf);
  const scans = historyTable.test(node['Relation Name'] ?? '') && node['Actual Loops'] > 0;
  return scans ? [node, ...below] : below;
}

describe.each(databaseKinds)('plans on %s', (kind) => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await testDatabase(kind);
    db = database.db;
    // The database's own jobs would compress more at some time, and change what is scanned.
    if (kind === 'timescaledb') {
      await db.query(
        'select alter_job(job_id, scheduled => false) from timescaledb_information.jobs',
      );
    }
    // Ten weeks: an event every 50 minutes and a measurement every 25, and a few each of many other devices, so that a
    // plan does not simply read a whole chunk. The older half is compressed.
    await db.query(
      `with measured as materialized (
         select d, '0x' || i % 2 as s_id, ms_to_timestamp($1) - i * interval '25 minutes' as ts, i
           from generate_series(1, ${devices}) d, generate_series(1, 4032) i
          union all
         select d, '0x1', ms_to_timestamp($1) - i * interval '1 day', i
           from generate_series(100, 1100) d, generate_series(1, 69) i
       ), made as (
         insert into series (device_id, s_id) select distinct d, s_id from measured returning *
       )
       insert into measurement (series_id, ts, val)
       select made.id, ts, i
         from measured
         join made on made.device_id = measured.d and made.s_id = measured.s_id`,
      [now],
    );
    await db.query(
      `insert into event (device_id, type, ts, key, body)
       select d, case when i % 100 = 0 then 'device' else 'sense' end,
              ms_to_timestamp($1) - i * interval '50 minutes', i::text, '{}'::json
         from generate_series(1, ${devices}) d, generate_series(1, 2016) i
        union all
       select d, 'sense', ms_to_timestamp($1) - i * interval '84 hours', i::text, '{}'::json
         from generate_series(100, 1100) d, generate_series(0, 20) i`,
      [now],
    );
    await db.query(
      `insert into event_sense (device_id, s_id, ts, key, seq, body)
       select device_id, case when key::integer % 101 = 0 then '0xff' else '0x1' end, ts, key, seq, body
         from event
        where type = 'sense'`,
    );
    if (kind === 'timescaledb') {
      await db.query(
        `select compress_chunk(chunk)
           from unnest(array['measurement', 'event', 'event_sense']) t,
                lateral show_chunks(t::regclass, older_than => interval '35 days') chunk`,
      );
    }
    for (const table of ['measurement', 'event', 'event_sense']) {
      await db.query(`vacuum analyze ${table}`);
    }
  });
  afterAll(() => database?.drop());

  /** The last statement that it makes. */
  async function lastQuery(look: (sql: Sql) => Promise<unknown>): Promise<pg.QueryConfig> {
    const last = (await queriesOf(look)).at(-1);
    if (!last?.text) throw new Error('It makes no statement with a configuration.');
    return last;
  }

  /** The statements that it makes, in their order. */
  async function queriesOf(look: (sql: Sql) => Promise<unknown>): Promise<pg.QueryConfig[]> {
    const made: pg.QueryConfig[] = [];
    const query = (config: pg.QueryConfig) => {
      made.push(config);
      return db.query(config);
    };
    await look({ query } as Sql);
    return made;
  }

  /** Explains it as planned for its values, and as planned once the plan is kept. */
  async function explain({ text, values }: pg.QueryConfig): Promise<Node[]> {
    const client = openClient(database.url);
    await client.connect();
    const literals = (values ?? []).map((value) => {
      if (value === null || value === undefined) return 'null';
      return pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value));
    });
    await client.query({ text: `prepare listed as ${text}` });
    const roots: Node[] = [];
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`);
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Node }[] }>(
        `explain (analyze, timing off, format json) execute listed (${literals.join()})`,
      );
      roots.push(...(rows[0]?.['QUERY PLAN'] ?? []).map(({ Plan }) => Plan));
    }
    await client.end();
    expect(roots).toHaveLength(2);
    return roots;
  }

  /** Expects that an index leads to every row that is read, and that few of those are not in the answer. */
  async function expectIndexed(
    look: (sql: Sql) => Promise<unknown>,
    maxRows: number,
    maxScans: number,
  ) {
    for (const root of await explain(await lastQuery(look))) {
      const scans = scansOf(root);
      expect(root['Actual Rows']).toBeGreaterThan(0);
      const types = [...new Set(scans.map((node) => node['Node Type']))];
      expect(types.filter((type) => !/^(Index|Custom|Bitmap)/.test(type))).toEqual([]);
      // Compressed chunks return batches, which are filtered above them.
      const plain = scans.filter((node) => node['Node Type'].startsWith('Index'));
      const read = plain.map(
        (node) =>
          (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      );
      expect(read.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(maxRows);
      expect(scans.length).toBeLessThanOrEqual(maxScans);
    }
  }

  /** There are no recent events then: it is looked for in all of the history. */
  const later = now + 1_000 * day;
  const types = [undefined, 'device', 'sense'] as const;
  const senses = [undefined, ['0x1'], ['0xff'], ['0xff', '0x1']];
  const ranges: [string, Partial<ListedRange>][] = [
    ['all time', {}],
    ['an early week', { start: now - 49 * day, end: now - 42 * day }],
    ['a late week', { start: now - 14 * day, end: now - 7 * day }],
    ['from a start', { start: now - 30 * day }],
    ['to an end', { end: now - 50 * day }],
    ['behind a cursor', { after: [now - 40 * day, '5'] }],
  ];

  describe.each(ranges)('of events in %s', (_name, range) => {
    for (const type of types) {
      for (const wanted of senses.filter((s) => s === undefined || type !== 'device')) {
        test(`of type ${type ?? 'any'} and senses ${wanted?.join() ?? 'any'}`, async () => {
          const filter = { deviceId, start: 0, type: type && [type], senses: wanted, ...range };
          // A rare sense or type has its rows far apart, so some chunks are passed through.
          const rare = type === 'device' || (wanted?.includes('0xff') ?? false) || !type;
          await expectIndexed((sql) => listEvents(sql, filter, later), 60, rare ? 30 : 4);
        });
      }
    }
  });

  test.each([{ type: ['sense'] }, { senses: ['0x1'] }])(
    'of recent events know of no older chunk: %j',
    async (filter) => {
      const start = now - 14 * day;
      const look = (sql: Sql) => listEvents(sql, { deviceId, start, ...filter }, now);
      await expectIndexed(look, 60, 4);
      const [planned] = await explain(await lastQuery(look));
      expect(new Set(planned && chunksOf(planned)).size).toBeLessThanOrEqual(3);
    },
  );

  test('of lists are made once, whatever the parameters', async () => {
    const client = openClient(database.url);
    await client.connect();
    const senses = await listMeasuredSenses(db, deviceId);
    for (let i = 0; i < 8; i += 1) {
      await listEvents(client, { deviceId: i, start: now - i * day, type: ['sense'] }, later);
      await listEvents(client, { deviceId: i, start: 0, senses: ['0xff'] }, later);
      await listMeasurements(client, { senses, start: now - i * day, end: now }, 20, now);
    }
    const { rows } = await client.query<{ custom_plans: string }>(
      'select custom_plans from pg_prepared_statements',
    );
    await client.end();
    expect(rows.map((row) => row.custom_plans)).toEqual(['5', '5', '5']);
  });

  test('of measurements read no further than a page', async () => {
    const range = { senses: await listMeasuredSenses(db, deviceId), start: 0, end: now };
    expect(range.senses).toHaveLength(2);
    await expectIndexed((sql) => listMeasurements(sql, range, 20, now), 60, 6);
    const after: [number, number, string] = [now - 50 * day, 0, '0x1'];
    await expectIndexed((sql) => listMeasurements(sql, range, 20, now, after), 60, 8);
  });

  // A look into each chunk for each sense, or a comparison with its range, is what a device of 1,000 senses waits for.
  test('of many senses know of no older chunk', async () => {
    const ids = Array.from({ length: 10 }, (_, n) => n + 1);
    const senses = (await Promise.all(ids.map((id) => listMeasuredSenses(db, id)))).flat();
    const range = { senses, start: 0, end: later };
    const buckets = { width: { count: 1, unit: 'm' }, tz: 'UTC', nowTs: now } as const;
    const list = (sql: Sql) => listMeasurements(sql, range, 20, now);
    await expectIndexed(list, 3 * senses.length, 3);
    const history = kind === 'timescaledb' ? kind : 'plain';
    const count = (sql: Sql) => walkBuckets(sql, history, range, buckets).next();
    for (const look of [list, count]) {
      for (const query of await queriesOf(look)) {
        const [planned] = await explain(query);
        expect(new Set(planned && chunksOf(planned)).size).toBeLessThanOrEqual(3);
      }
    }
  });

  test("of senses' newest values read no further than those", async () => {
    const wanted = Array.from({ length: devices }, (_, n) =>
      ['0x0', '0x1'].map((sId) => ({ deviceId: n + 1, sId })),
    ).flat();
    await expectIndexed((sql) => findNewest(sql, wanted), wanted.length, 2);
  });

  test('of buckets read only their range', async () => {
    const senses = await listMeasuredSenses(db, deviceId, ['0x1']);
    const range = { senses, start: now - 20 * day, end: now - 18 * day };
    const look = (sql: Sql) =>
      walkBuckets(sql, kind === 'timescaledb' ? kind : 'plain', range, {
        width: { count: 1, unit: 'h' },
        tz: 'UTC',
        nowTs: now,
      }).next();
    // Two days with a point every 50 minutes, each looked up once more for the newest.
    await expectIndexed(look, 200, 5);
  });
});
