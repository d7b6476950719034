import type { QueryConfig } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAlarms } from '../../src/alarms/rows.ts';
import { removeContacts } from '../../src/contacts/contacts.ts';
import type { Database } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import { findDevices } from '../../src/devices/list.ts';
import { walkEvents } from '../../src/events/export.ts';
import { listMeasurements, toCursor } from '../../src/measurements/queries.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

type AlarmFilter = Parameters<typeof listAlarms>[1];

/** A node of `explain (analyze, buffers, format json)`; only the members that are used here. */
type Node = {
  'Relation Name'?: string;
  'Actual Loops': number;
  'Actual Rows': number;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Node[];
};

const manyAlarms = 20_000;
const siteDevices = 30;

describe.each(databaseKinds)('rows read for one answer, on %s', (kind) => {
  let database: TestDatabase;
  let db: Database;
  let accountId: number;
  let uuids: string[];

  beforeAll(async () => {
    database = await testDatabase(kind);
    ({ db } = database);
    accountId = await addAccount('many');
    uuids = await addDevices(accountId);
    // Three in four belong to the first device, which has no label; the rest is spread over the others. One in ten is
    // still open.
    await db.query(
      `with numbered as (
         select d.*, row_number() over (order by d.id) - 1 as n from device d where account_id = $1)
       insert into alarm
         (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global, since_at,
          last_firing_at, event, actions, s_ids, closed_at, closed_by)
       select $1, d.id, d.uuid, '', 1, 1, i, 'alarm', false, false, now(), now(), '{}', '{}', '{}',
              case when i % 10 = 0 then null else now() end, case when i % 10 = 0 then null else 'cleared' end
         from generate_series(1, $2::integer) i
         join numbered d
           on d.n = case when i <= $2::integer - 300 or i % 4 > 0 then 0 else 1 + (i / 4) % ${siteDevices + 1} end
        order by i`,
      [accountId, manyAlarms],
    );
    await db.query(
      `insert into notification (account_id, device_id, kind, recipient, title, body, engine, state, contact_id)
       select $1, (select id from device where uuid = $2), 'webhook', 'x', '', '', '{}',
              case when i % 5000 = 0 then 'planned' when i % 5000 = 1 then 'queued' else 'sent' end,
              1 + i % 50
         from generate_series(1, $3::integer) i`,
      [accountId, uuids[0], manyAlarms],
    );
    await db.query('vacuum analyze');
  });
  afterAll(() => database?.drop());

  async function addAccount(name: string): Promise<number> {
    const { rows } = await db.query<{ id: number }>(
      `insert into account (email, email_normal, password_hash) values ($1, $1, '') returning id`,
      [`${name}@example.com`],
    );
    return rows[0]?.id ?? 0;
  }

  /**
   * The first device without a label, one with a label of its own, the others of a site; with configurations of 60 kB.
   */
  async function addDevices(owner: number): Promise<string[]> {
    const { rows } = await db.query<{ uuid: string }>(
      `with added as (
         insert into device (account_id, connector_id, name, labels, configuration)
         select $1, 1, 'Meter ' || n,
                case when n = 0 then '{}' when n = 1 then array['alone'] else array['site'] end,
                json_build_object('device', json_build_object('serial', 'Serial ' || n), 'x',
                  (select string_agg(md5(n || ' ' || i), '') from generate_series(1, 2000) i))
           from generate_series(0, $2::integer) n
         returning id, uuid
       ), states as (insert into device_state (device_id) select id from added)
       select uuid from added order by id`,
      [owner, siteDevices + 1],
    );
    return rows.map(({ uuid }) => uuid);
  }

  /** The plan of the last statement of `work`. */
  async function planOf(work: (sql: Sql) => Promise<unknown>): Promise<Node> {
    let last: [string, unknown[]] = ['', []];
    const watched = {
      query: (text: string, values: unknown[]) => {
        last = [text, values];
        return db.query(text, values);
      },
    } as unknown as Sql;
    await work(watched);
    const { rows } = await db.query<{ 'QUERY PLAN': { Plan: Node }[] }>(
      `explain (analyze, buffers, timing off, format json) ${last[0]}`,
      last[1],
    );
    return rows[0]?.['QUERY PLAN'][0]?.Plan as Node;
  }

  function rowsOf(node: Node, table: string): number {
    const below = (node.Plans ?? []).reduce((sum, each) => sum + rowsOf(each, table), 0);
    if (node['Relation Name'] !== table) return below;
    const each = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
    return below + each * node['Actual Loops'];
  }

  const filters: [string, Partial<AlarmFilter>][] = [
    ['a label that no device has', { label: 'nobody' }],
    ['a label of one device', { label: 'alone' }],
    ['a label of many', { label: 'site' }],
    ['a label of many, closed', { label: 'site', state: 'closed' }],
    ['a label of many, open', { label: 'site', state: 'open' }],
    ['a label of one device, open', { label: 'alone', state: 'open' }],
    ['a label that no device has, acknowledged', { label: 'nobody', state: 'acknowledged' }],
    ['a key of a label', { within: ['alone', 'other'] }],
    ['a key of a label that no device has', { within: ['other'] }],
    ['a key and a label that exclude each other', { within: ['alone'], label: 'site' }],
    ['a device without the label', { label: 'site', deviceUuid: 'first' }],
    [
      'a device out of reach of the key',
      { within: ['site'], deviceUuid: 'first', state: 'closed' },
    ],
  ];

  it.each(filters)(
    'a page of alarms reads no more rows than its limit allows: %s',
    async (_, of) => {
      const filter = whole(of);
      const plan = await planOf((sql) => listAlarms(sql, filter));
      // One entry of each device, a page of each of as many devices, and the page itself.
      const bound = siteDevices * (1 + filter.limit) + 3 * filter.limit;
      expect(rowsOf(plan, 'alarm')).toBeLessThanOrEqual(bound);
    },
  );

  it.each([
    ...filters,
    ['open ones of a label', { label: 'site', state: 'open' }],
    ['one device', { deviceUuid: 'second' }],
    ['all', {}],
  ] as [string, Partial<AlarmFilter>][])(
    'pages of alarms have all that fit, the newest first: %s',
    async (_, of) => {
      const filter = whole(of);
      const found: number[] = [];
      for (let beforeId: number | undefined; found.length < 400;) {
        const page = await listAlarms(db, { ...filter, beforeId });
        found.push(...page.map(({ alarm }) => alarm.alarmId));
        if (page.length < filter.limit) break;
        beforeId = found.at(-1);
      }
      const { rows } = await db.query<{ id: number }>(
        `select a.id from alarm a join device d on d.id = a.device_id
        where a.account_id = $1 and ($2::text is null or $2 = any(d.labels))
          and ($3::text[] is null or d.labels && $3) and ($4::uuid is null or d.uuid = $4)
          and ($5::text is null or ($5 = 'closed') = (a.closed_at is not null))
        order by a.id desc limit $6`,
        [accountId, filter.label, filter.within, filter.deviceUuid, filter.state, found.length + 1],
      );
      const expected = rows.map(({ id }) => id);
      expect(found).toEqual(found.length < 400 ? expected : expected.slice(0, found.length));
    },
  );

  function whole(of: Partial<AlarmFilter>): AlarmFilter {
    const places: Record<string, string | undefined> = { first: uuids[0], second: uuids[1] };
    const deviceUuid = of.deviceUuid && places[of.deviceUuid];
    return { accountId, within: null, limit: 20, ...of, deviceUuid };
  }

  it('alarms of a removed device are not read until they are deleted', async () => {
    const owner = await addAccount('removing');
    const [first, second] = await addDevices(owner);
    await db.query(
      `insert into alarm
         (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global, since_at,
          last_firing_at, event, actions, s_ids, closed_at, closed_by)
       select $1, d.id, d.uuid, '', 1, 1, i, 'alarm', false, false, now(), now(), '{}', '{}', '{}', now(), 'cleared'
         from generate_series(1, 5010) i
         join device d on d.uuid = case when i <= 10 then $3::uuid else $2::uuid end
        order by i`,
      [owner, first, second],
    );
    // As a removal leaves it before its pieces are deleted.
    await db.query(
      `with removed as (
         insert into removed_device (device_id, account_id) select id, account_id from device where uuid = $1)
       update device set account_id = null where uuid = $1`,
      [first],
    );
    await db.query('vacuum analyze alarm');
    const filters: Partial<AlarmFilter>[] = [{}, { state: 'closed' }];
    for (const of of filters) {
      const filter = { ...whole({}), ...of, accountId: owner };
      expect(await listAlarms(db, filter)).toHaveLength(10);
      const plan = await planOf((sql) => listAlarms(sql, filter));
      expect(rowsOf(plan, 'alarm')).toBeLessThanOrEqual(siteDevices * (1 + 20) + 3 * 20);
    }
  });

  it('devices of another account are not read', async () => {
    const stranger = await addAccount('stranger');
    const filter = { ...whole({}), accountId: stranger, deviceUuid: uuids[0] };
    expect(await listAlarms(db, filter)).toEqual([]);
    expect(rowsOf(await planOf((sql) => listAlarms(sql, filter)), 'alarm')).toBe(0);
  });

  it('a page of values of many senses reads a few pages, not one of each sense', async () => {
    const [senses, points, limit] = [60, 200, 50];
    const { rows } = await db.query<{ seriesId: number; sId: string }>(
      `insert into series (device_id, s_id)
       select id, '0x' || to_hex(n) from device, generate_series(1, $2::integer) n where uuid = $1
       returning id as "seriesId", s_id as "sId"`,
      [uuids[0], senses],
    );
    const newestTs = Math.floor(Date.now() / 60_000) * 60_000;
    await db.query(
      `insert into measurement (series_id, ts, val)
       select id, ms_to_timestamp($2::bigint - n * 60000 - id % 7), n
         from unnest($1::bigint[]) id, generate_series(1, $3::integer) n`,
      [rows.map(({ seriesId }) => seriesId), newestTs, points],
    );
    await db.query('vacuum analyze measurement');
    const range = {
      senses: rows.toSorted((one, other) => (one.sId < other.sId ? -1 : 1)),
      start: 0,
      end: newestTs,
    };
    const { watched, rowsRead } = watch();
    const page = await listMeasurements(watched, range, limit, newestTs);
    // The newest of each sense, and the candidates for the page once more.
    expect(rowsRead()).toBeLessThanOrEqual(2 * senses + 3 * limit);
    // All pages together contain everything, in order.
    const found = [...page];
    for (let last = page; last.length === limit;) {
      const end = found.at(-1);
      if (!end) throw new Error('a page is empty');
      last = await listMeasurements(db, range, limit, newestTs, toCursor(end));
      found.push(...last);
    }
    expect(found).toHaveLength(senses * points);
    const order = found.map(({ ts, s_id }) => `${ts} ${s_id}`);
    expect(order).toEqual(order.toSorted().toReversed());
    expect(new Set(order).size).toBe(order.length);
  });

  /** Runs statements, and counts the rows that they read. */
  function watch() {
    let read = 0;
    const watched = {
      async query(config: QueryConfig) {
        const explained = await db.query<{ 'QUERY PLAN': { Plan: Node }[] }>(
          `explain (analyze, buffers, timing off, format json) ${config.text}`,
          config.values,
        );
        read += readOf(explained.rows[0]?.['QUERY PLAN'][0]?.Plan as Node);
        return db.query(config.text, config.values);
      },
    } as unknown as Sql;
    return { watched, rowsRead: () => read };
  }

  /** Rows read from tables, including chunks. */
  function readOf(node: Node): number {
    const below = (node.Plans ?? []).reduce((sum, each) => sum + readOf(each), 0);
    if (node['Relation Name'] === undefined) return below;
    const each = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
    return below + each * node['Actual Loops'];
  }

  it('an export of events starts with a few rows, even if none is wanted', async () => {
    const deviceId = (
      await db.query<{ id: number }>('select id from device where uuid = $1', [uuids[0]])
    ).rows[0]?.id as number;
    // Most of them in one week as TimescaleDB divides them, a few in the next one.
    await db.query(
      `insert into event (device_id, type, ts, key, body)
       select $1, 'device', to_timestamp(floor(extract(epoch from now()) / 604800) * 604800) + (10 - n) * interval '1 minute',
              'key ' || n, '{"cause":{"engine":{"puId":1,"stId":1}}}'
         from generate_series(1, 5000) n`,
      [deviceId],
    );
    await db.query('vacuum analyze event');
    const devices = [{ id: deviceId, uuid: uuids[0] as string }];
    const filter = { accountId, start: 0, end: Date.now() + 3_600_000, order: 'asc' } as const;
    const first = async (order: 'asc' | 'desc', purpose?: string[]) => {
      const { watched, rowsRead } = watch();
      const asked = { ...filter, order, purpose };
      const { value } = await walkEvents(watched, devices, asked, 'ndjson').next();
      return [rowsRead() <= 200, String(value ?? '').split('\n').length - 1];
    };
    for (const order of ['asc', 'desc'] as const) {
      expect(await first(order)).toEqual([true, 100]);
      expect(await first(order, ['99'])).toEqual([true, 0]);
    }
    let all = '';
    for await (const block of walkEvents(db, devices, filter, 'ndjson')) all += block;
    expect(all.split('\n')).toHaveLength(5_001);
  });

  it('a search reads names and serial numbers, but no configuration', async () => {
    const filter = { accountId, labels: null, nowTs: Date.now(), intermittent: [] };
    const search = (text: string) => (sql: Sql) =>
      findDevices(sql, { ...filter, search: text }, 10);
    expect(await search('serial 31')(db)).toMatchObject([{ uuid: uuids[31], serial: 'Serial 31' }]);
    const plan = await planOf(search('zzz'));
    // A configuration has about ten pages.
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(siteDevices * 4);
  });

  it("the removal of contacts reads the messages that wait for them, and not everybody's", async () => {
    const plan = await planOf((sql) => removeContacts(sql, [1, 2], Date.now()));
    expect(rowsOf(plan, 'notification')).toBeLessThan(20);
    const { rows } = await db.query<{ state: string; reason: string | null }>(
      `select state, reason from notification where contact_id in (1, 2) and state <> 'sent'
        order by id limit 2`,
    );
    expect(rows).toEqual([
      { state: 'failed', reason: 'contact-gone' },
      { state: 'failed', reason: 'contact-gone' },
    ]);
  });
});
