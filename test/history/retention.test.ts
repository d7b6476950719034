import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import {
  applyNext,
  estimateLoss,
  inForce,
  listRetention,
  pruneHistory,
  type RetentionRow,
  settle,
  settleRetention,
} from '../../src/history/retention.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';

const now = 1_700_000_000_000;
const dayMs = 86_400_000;
/** How long a shorter retention waits before it takes effect: docs/storage.md. */
const noticeMs = dayMs;
const row = (days: number | null, nextDays: number | null = null, nextTs: number | null = null) =>
  ({ what: 'measurements', days, nextDays, nextTs }) satisfies RetentionRow;

test.each([
  { name: 'the same', before: row(90), toDays: 90, nowTs: now, after: row(90), kind: null },
  { name: 'longer', before: row(90), toDays: 365, nowTs: now, after: row(365), kind: null },
  {
    name: 'shorter',
    before: row(90),
    toDays: 9,
    nowTs: now,
    after: row(90, 9, now + noticeMs),
    kind: 'announced',
  },
  {
    name: 'shorter, in doubt',
    before: row(90),
    toDays: 9,
    nowTs: null,
    after: row(90),
    kind: null,
  },
  {
    name: 'half a day later',
    before: row(90, 9, now + 1),
    toDays: 9,
    nowTs: now,
    after: row(90, 9, now + 1),
    kind: 'waiting',
  },
  {
    name: 'a day later',
    before: row(90, 9, now),
    toDays: 9,
    nowTs: now,
    after: row(9),
    kind: 'shortened',
  },
  {
    name: 'a day later, in doubt',
    before: row(90, 9, now),
    toDays: 9,
    nowTs: null,
    after: row(90, 9, now),
    kind: null,
  },
  {
    name: 'taken back',
    before: row(90, 9, now - 1),
    toDays: 90,
    nowTs: now,
    after: row(90),
    kind: 'taken-back',
  },
  {
    name: 'taken back, in doubt',
    before: row(90, 9, now - 1),
    toDays: 90,
    nowTs: null,
    after: row(90),
    kind: 'taken-back',
  },
  {
    name: 'even shorter',
    before: row(90, 9, now - 1),
    toDays: 8,
    nowTs: now,
    after: row(90, 8, now + noticeMs),
    kind: 'announced',
  },
  {
    name: 'shorter than everything',
    before: row(null),
    toDays: 90,
    nowTs: now,
    after: row(null, 90, now + noticeMs),
    kind: 'announced',
  },
])('$name', ({ before, toDays, nowTs, after, kind }) => {
  const settled = settle(before, toDays, nowTs);
  expect(settled.row).toEqual(after);
  expect(settled.change?.kind ?? null).toBe(kind);
});

test('nothing becomes shorter unless all processes ask for it for a day', () => {
  const step = fc.record({
    toDays: fc.integer({ min: 1, max: 5 }),
    hours: fc.integer({ min: 0, max: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let state: RetentionRow = row(5);
      let nowTs = now;
      const asked: { toDays: number; ts: number }[] = [];
      for (const { toDays, hours } of steps) {
        nowTs += hours * 3_600_000;
        const before = state.days ?? 0;
        asked.push({ toDays, ts: nowTs });
        state = settle(state, toDays, nowTs).row;
        if ((state.days ?? 0) >= before) continue;
        const lately = asked.filter(({ ts }) => ts > nowTs - noticeMs);
        expect(lately.every((one) => one.toDays === toDays)).toBe(true);
        expect(asked.find((one) => one.toDays === toDays)?.ts).toBeLessThanOrEqual(
          nowTs - noticeMs,
        );
      }
    }),
  );
});

describe.each(databaseKinds)('on %s', (kind) => {
  let database: TestDatabase;
  let db: Database;
  beforeAll(async () => {
    database = await testDatabase(kind);
    db = database.db;
  });
  afterEach(async () => {
    await db.query('delete from history_retention; delete from measurement; delete from event');
  });
  afterAll(() => database?.drop());

  const fill = async (ages: number[]) => {
    for (const age of ages)
      await db.query(
        `insert into measurement (series_id, ts, val) values (1, ms_to_timestamp($1), 1)`,
        [now - age * dayMs],
      );
  };
  const ages = async () => {
    const { rows } = await db.query<{ ts: number }>('select ts from measurement order by ts desc');
    return rows.map(({ ts }) => Math.round((now - ts) / dayMs));
  };
  const configured = (measurementsDays: number) => ({ eventsDays: 365, measurementsDays });
  /** Does what the upkeep does. */
  const upkeep = async (days: number, nowTs: number | null) => {
    const changes = await settleRetention(db, configured(days), nowTs);
    const kept = inForce(await listRetention(db), configured(days));
    if (nowTs !== null) await pruneHistory(db, { retention: kept, nowTs });
    return changes.filter(({ what }) => what === 'measurements').map((change) => change.kind);
  };

  test('a typo is reported, waits a day, and is taken back with the setting', async () => {
    expect(await upkeep(90, now)).toEqual([]);
    await fill([0, 5, 20, 80]);
    expect(await upkeep(9, now)).toEqual(['announced']);
    expect(await upkeep(9, now + noticeMs - 1)).toEqual(['waiting']);
    expect(await ages()).toEqual([0, 5, 20, 80]);
    expect(await upkeep(90, now + noticeMs)).toEqual(['taken-back']);
    expect(await upkeep(90, now + 2 * noticeMs)).toEqual([]);
    expect(await ages()).toEqual([0, 5, 20, 80]);
  });

  test('an intended change takes effect after a day', async () => {
    await upkeep(90, now);
    await fill([0, 5, 20, 80]);
    await upkeep(9, now);
    expect(await upkeep(9, now + noticeMs)).toEqual(['shortened']);
    expect(await ages()).toEqual([0, 5]);
    expect(await listRetention(db)).toContainEqual(row(9));
  });

  test('or at once, if the operator says so', async () => {
    await upkeep(90, now);
    await fill([0, 20]);
    expect(await applyNext(db)).toEqual([]);
    await upkeep(9, now);
    expect(await applyNext(db)).toEqual([row(90, 9)]);
    expect(await upkeep(9, now)).toEqual([]);
    expect(await ages()).toEqual([0]);
  });

  test('while one machine has the typo and the other not, nothing is deleted', async () => {
    await upkeep(90, now);
    await fill([0, 20, 80]);
    for (let hour = 0; hour < 60; hour += 6) {
      const nowTs = now + hour * 3_600_000;
      expect(await upkeep(9, nowTs)).toEqual(['announced']);
      expect(await upkeep(90, nowTs)).toEqual(['taken-back']);
    }
    expect(await ages()).toEqual([0, 20, 80]);
  });

  test('a history without a recorded retention is kept, and becomes shorter only after a day', async () => {
    await fill([0, 20, 200]);
    expect(await upkeep(9, now)).toEqual(['announced']);
    expect(await ages()).toEqual([0, 20, 200]);
    expect(await upkeep(9, now + noticeMs)).toEqual(['shortened']);
    expect(await ages()).toEqual([0]);
  });

  test('a clock in doubt shortens nothing', async () => {
    await upkeep(90, now);
    await fill([0, 20]);
    await upkeep(9, now);
    expect(await upkeep(9, null)).toEqual([]);
    expect(await listRetention(db)).toContainEqual(row(90, 9, now + noticeMs));
  });

  test('estimates how much a shorter one would delete', async () => {
    await fill([0, 20, 80]);
    const { rows } = await db.query<{ id: number }>(
      `insert into account (uuid, name, email, password_hash)
       values (gen_random_uuid(), 'n', gen_random_uuid() || '@example.org', '') returning id`,
    );
    await db.query(
      `insert into account_activity (account_id, process, day, measurements, events, events_left_out)
       select $1, gen_random_uuid(), (ms_to_timestamp($2) at time zone 'UTC')::date - age, 10, 0, 0
         from unnest(array[0, 20, 80]) age`,
      [rows[0]?.id, now],
    );
    const loss = await estimateLoss(db, { what: 'measurements', toDays: 9, nowTs: now });
    expect(loss).toEqual({ rows: 20, chunks: kind === 'timescaledb' ? 2 : 0 });
    await db.query('delete from account where id = $1', [rows[0]?.id]);
  });
});

describe.runIf(databaseKinds.includes('timescaledb'))('TimescaleDB', () => {
  test('a role that owns nothing drops chunks of the history, and nothing else', async () => {
    const { db, url, drop } = await testDatabase('timescaledb');
    const role = `runs_${process.pid}`;
    const { rows } = await db.query<{ schema: string; database: string }>(
      'select current_schema as schema, current_database() as database',
    );
    const { schema, database } = rows[0] ?? { schema: '', database: '' };
    await db.query(`create role ${role} login password 'x'`);
    for (const grant of [
      `connect on database ${database}`,
      `usage on schema public, ${schema}`,
      `select, insert, update, delete on all tables in schema public, ${schema}`,
      `usage on all sequences in schema public, ${schema}`,
      `execute on all functions in schema ${schema}`,
    ])
      await db.query(`grant ${grant} to ${role}`);
    await db.query(
      `insert into measurement (series_id, ts, val) values (1, now() - interval '100 days', 1), (1, now(), 1)`,
    );
    await db.query(`create table other (ts timestamptz not null)`);
    await db.query(`select create_hypertable('other', 'ts')`);
    const asRole = new URL(url);
    asRole.username = role;
    asRole.password = 'x';
    const { openTestDatabase } = await import('../support/database.ts');
    const own = openTestDatabase(asRole.href);
    await expect(
      own.query(`select drop_chunks('measurement', older_than => now())`),
    ).rejects.toThrow('must be owner');
    await expect(own.query(`select drop_history_chunks('other'::regclass, now())`)).rejects.toThrow(
      'no history',
    );
    const retention = { eventsDays: 365, measurementsDays: 90 };
    await pruneHistory(own, { retention, nowTs: Date.now() });
    const left = await db.query('select from measurement');
    expect(left.rowCount).toBe(1);
    await own.close();
    const { rows: settings } = await db.query<{ proconfig: string[] }>(
      `select proconfig from pg_proc where proname = 'drop_history_chunks'`,
    );
    expect(settings[0]?.proconfig).toContain('search_path=pg_catalog, pg_temp');
    // Roles without a grant may not call it.
    const { rows: acl } = await db.query<{ may: boolean }>(
      `select has_function_privilege('public', 'drop_history_chunks(regclass, timestamptz)', 'execute') as may`,
    );
    expect(acl[0]?.may).toBe(false);
    await drop();
    await runOn(url.replace(/\/[^/?]*(\?|$)/, '/postgres$1'), (client) =>
      client.query(`drop role ${role}`),
    );
  });
});
