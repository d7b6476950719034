import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownedRows } from '../../src/history/clear-removed.ts';
import { historyTables } from '../../src/history/retention.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

/**
 * How many rows one row of the other table takes along when it is deleted or changed. Each of these foreign keys was
 * examined. What can be many is deleted in pieces first (`history/clear-removed.ts`), and is not listed here.
 */
const few: Record<string, string> = {
  'account_quota -> account': 'one a quota that the operator changed',
  'account_usage -> account': 'one',
  'alarm_upgrade -> device': 'one',
  'backtest -> job': 'one',
  'device_mute -> device': 'one',
  'device_state -> device': 'one; goes with the mark',
  'presence -> device': 'one',
  'rejection_count -> device': 'one',
  'device_due -> device_state': 'one',
  'evidence_log -> device_state':
    'as many as half of the evidence is long; the next whole writing ends them',
  'former_version -> purpose': 'a thousand, of 256 KiB together',
  'kept_display -> device_state': 'ten, the newest of each state',
  'sense_clock -> device_state': 'one a sense, 1,024 (`sensesPerDevice`)',
  'profile -> profile_content': 'set to null; contents go when no device has them, one by one',
};

/** Rows that the pieces of two owners delete. The other owner's row is never deleted while they exist. */
const before: Record<string, string> = {
  'device -> account': 'each is taken away from its account, a hundred at a time',
  'backtest -> account': 'with their jobs',
  'backtest_device -> backtest': 'a backtest that is removed alone takes at most 10,000 along',
  'backtest_lines -> backtest': 'the same, a few thousand rows',
  'device_profile -> profile': 'profiles go when no device of their account is left',
  'device_profile_span -> profile': 'the same',
};

const tablesOf = (rows: readonly { table: string }[]) => rows.map(({ table }) => table);
const ofDevices = tablesOf(ownedRows.ofDevices);
const ofAccounts = tablesOf(ownedRows.ofAccounts);

/** Columns that name a device or an account without a foreign key, and what deletes the rows. */
const withoutKey: Record<string, string> = {
  'series.device_id': 'purgeDevices',
  'event.device_id': 'purgeDevices',
  'event_sense.device_id': 'purgeDevices',
  'event_feed.device_id': 'purgeDevices, or with its account',
  'alarm_change.device_id':
    'purgeDevices, or with its account; that an alarm went stays a day, for streams',
  'removed_device.device_id': 'the last thing that goes of a device',
  'removed_device.account_id': 'the same row',
  'device_due.account_id': 'with its device',
  'command.account_id': 'with its device',
};

describe.each(databaseKinds)('cascades, on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database?.drop());

  test('each foreign key that deletes or changes rows is bounded, or cleared in pieces', async () => {
    const { rows } = await database.db.query<{ child: string; parent: string }>(
      `select c.conrelid::regclass::text as child, c.confrelid::regclass::text as parent
         from pg_constraint c
         join pg_class t on t.oid = c.conrelid
        where c.contype = 'f' and c.confdeltype in ('c', 'n', 'd')
          and t.relnamespace = current_schema::regnamespace`,
    );
    const decided = (child: string, parent: string) =>
      `${child} -> ${parent}` in few ||
      `${child} -> ${parent}` in before ||
      (parent === 'device' && ofDevices.includes(child)) ||
      (parent === 'account' && ofAccounts.includes(child));
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(({ child, parent }) => !decided(child, parent))).toEqual([]);
    // And nothing is listed that does not exist.
    const there = new Set(rows.map(({ child, parent }) => `${child} -> ${parent}`));
    expect(
      [...Object.keys(few), ...Object.keys(before)].filter((name) => !there.has(name)),
    ).toEqual([]);
  });

  test('each column that names a device or an account is known to the code that clears', async () => {
    const { rows } = await database.db.query<{ table: string; column: string }>(
      `select table_name as table, column_name as column
         from information_schema.columns
        where table_schema = current_schema and column_name in ('device_id', 'account_id', 'series_id')
          and table_name in (select tablename from pg_tables where schemaname = current_schema)`,
    );
    const decided = ({ table, column }: { table: string; column: string }) => {
      const parent = column === 'device_id' ? 'device' : 'account';
      return (
        `${table}.${column}` in withoutKey ||
        (column === 'series_id' && historyTables.some(({ name }) => name === table)) ||
        (column === 'device_id' && ofDevices.includes(table)) ||
        (column === 'account_id' && ofAccounts.includes(table)) ||
        [`${table} -> ${parent}`, `${table} -> device_state`].some(
          (name) => name in few || name in before,
        )
      );
    };
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter((row) => !decided(row))).toEqual([]);
  });

  test('an index finds each piece', async () => {
    const { db } = database;
    const { rows } = await db.query<{ table: string; columns: string[] }>(
      `select i.indrelid::regclass::text as table,
              array(select a.attname::text
                      from unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
                      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                     order by k.place) as columns
         from pg_index i
        where i.indpred is null`,
    );
    const isFound = (table: string, owner: string, first: string) =>
      rows.some(
        (index) =>
          index.table === table &&
          (index.columns[0] === owner ||
            (index.columns[0] === first && index.columns[1] === owner)),
      );
    const unfound = [...ownedRows.ofDevices, ...ownedRows.ofAccounts].filter(
      ({ table, owner, before: first }) => !isFound(table, owner, first?.split(' ')[0] ?? owner),
    );
    expect(unfound).toEqual([]);
  });
});
