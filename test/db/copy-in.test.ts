import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CopiedRows, CopyRows, type CopySource, type Database } from '../../src/db/database.ts';
import { openTestDatabase, testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;
const statement = 'copy item (n, at, val) from stdin (format binary)';

function rowsOf(...items: [n: number, ts: number, val: number][]): Buffer {
  const rows = new CopyRows();
  for (const [n, ts, val] of items) rows.row(3).bigint(n).timestamptz(ts).float8(val);
  return rows.end();
}

beforeAll(async () => {
  database = await testDatabase();
  await database.db.query('create table item (n bigint primary key, at timestamptz, val float8)');
});
afterAll(() => database.drop());

describe.each([{ pipeline: true }, { pipeline: false }])('rows copied in, %o', ({ pipeline }) => {
  let db: Database;
  beforeAll(async () => {
    db = openTestDatabase(database.url, { maxConnections: 1, pipeline });
    await db.query('truncate item');
  });
  afterAll(() => db.close());

  it('are stored unchanged', async () => {
    const items: Parameters<typeof rowsOf> = [
      [1, 0, 0.1],
      [-1, -1, -5e-324],
      [2 ** 53 - 1, 1_700_000_000_123, NaN],
      [-(2 ** 53 - 1), 253_402_300_799_999, 1.7976931348623157e308],
    ];
    // More than fit into the first buffer.
    for (let n = 100; n < 5_000; n += 1) items.push([n, n, -n]);
    await db.transaction((tx) => tx.copyIn(statement, rowsOf(...items)));
    const { rows } = await db.query('select n, at, val from item');
    expect(rows.map(Object.values)).toEqual(items);
  });

  it('are read unchanged, in a transaction and outside', async () => {
    await db.transaction((tx) => tx.copyIn(statement, rowsOf([5, -1, -5e-324], [6, 1_700, NaN])));
    await db.query('insert into item (n) values (7)');
    const text =
      'copy (select n, at, val from item where n < $ order by n) to stdout (format binary)';
    const read = async (source: CopySource, below: number) => {
      const copied = new CopiedRows();
      const items: number[][] = [];
      await source.copyOut(text.replace('$', `${below}`), (row) => {
        if (copied.begin(row))
          items.push([copied.bigint(), copied.timestamptz() / 1_000, copied.float8()]);
      });
      return items.filter(([n = 0]) => n > 4);
    };
    const items = [
      [5, -1, -5e-324],
      [6, 1_700, NaN],
      [7, NaN, NaN],
    ];
    expect(await read(db, 8)).toEqual(items);
    expect(await db.transaction((tx) => read(tx, 8))).toEqual(items);
    expect(await read(db, -(2 ** 53))).toEqual([]);
    await expect(db.copyOut('copy nothing to stdout', () => undefined)).rejects.toThrow(
      'schema is not the one',
    );
    expect(await read(db, 6)).toEqual(items.slice(0, 1));
  });

  it('keep their order among other statements', async () => {
    const counts = await db.transaction(async (tx) => {
      const count = () =>
        tx.query<{ count: number }>('select count(*) from item where n between 10 and 19');
      const answers = await Promise.all([
        count(),
        tx.copyIn(statement, rowsOf([10, 0, 0])),
        count(),
        tx.copyIn(statement, rowsOf([11, 0, 0], [12, 0, 0])),
        count(),
      ]);
      return answers.flatMap((answer) => answer?.rows[0]?.count ?? []);
    });
    expect(counts).toEqual([0, 1, 3]);
  });

  it.each([
    ['a row that is there', statement, rowsOf([20, 0, 0], [20, 0, 0]), { code: '23505' }],
    [
      'no such table',
      'copy nothing from stdin (format binary)',
      rowsOf([21, 0, 0]),
      { code: 'unavailable', cause: { code: '42P01' } },
    ],
    [
      'bytes that are no rows',
      statement,
      Buffer.from('20\tname\n'.repeat(9_000)),
      { code: '22P04' },
    ],
  ])('are refused as a whole: %s', async (_, text, bytes, error) => {
    const failed = db.transaction(async (tx) => {
      await Promise.all([tx.copyIn(text, bytes), tx.query('insert into item values (30)')]);
    });
    await expect(failed).rejects.toMatchObject(error);
    const { rows } = await db.query('select n from item where n between 20 and 30');
    expect(rows).toEqual([]);
  });
});
