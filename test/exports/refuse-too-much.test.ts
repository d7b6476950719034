import { afterAll, beforeAll, expect, test } from 'vitest';
import { refuseTooMuch } from '../../src/exports/exports.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => void (database = await testDatabase()));
afterAll(() => database?.drop());

const most = { most: 1_000, what: 'points', instead: 'less' };
// The planner knows how many rows these are, without producing any.
const select = (rows: number) => ({ text: `select from generate_series(1, ${rows})`, values: [] });

test('too many rows are refused with their number, and what to request instead', async () => {
  await expect(refuseTooMuch(database.db, select(2_000_000_000), most)).rejects.toMatchObject({
    code: 'invalid-input',
    problems: [
      {
        path: 'start',
        message:
          'the request matches about 2000000000 points, but an answer has at most 1000: ask for less',
      },
    ],
  });
});

test('as many rows as one answer may have are not refused', async () => {
  await refuseTooMuch(database.db, select(1_000), most);
});
