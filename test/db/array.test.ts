import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { documentsOf, jsonSequence, plainArray } from '../../src/db/sql.ts';
import { testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

it('writes JSON of any content as PostgreSQL reads it', async () => {
  const text = fc.string({ unit: 'binary' }).map((raw) => raw.replaceAll('\0', ''));
  const value = fc.record({ text, nested: fc.array(fc.dictionary(text, fc.integer())) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.option(value), { minLength: 1, maxLength: 20 }),
      async (values) => {
        const { rows } = await database.db.query<{ read: unknown }>(
          `select value::json as read from unnest(${documentsOf('$1')}) with ordinality as t (value, n) order by n`,
          [jsonSequence(values.map((each) => each && JSON.stringify(each)))],
        );
        const sent = values.map((each) => JSON.parse(JSON.stringify(each)) as unknown);
        expect(rows.map(({ read }) => read)).toEqual(sent);
      },
    ),
    { numRuns: 200 },
  );
});

it('writes numbers, booleans and nothing', async () => {
  const { rows } = await database.db.query(
    'select $1::bigint[] as ints, $2::float8[] as floats, $3::boolean[] as booleans',
    [plainArray([1, null, -2]), plainArray([0.1, 1e300, null]), plainArray([true, false])],
  );
  expect(rows).toEqual([
    {
      ints: [1, null, -2].map((n) => (n === null ? null : String(n))),
      floats: [0.1, 1e300, null],
      booleans: [true, false],
    },
  ]);
});
