import { afterAll, beforeAll, expect, test } from 'vitest';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => void (database = await testDatabase()));
afterAll(() => database.drop());

const event = (evId: number, thresholds: object, more: object = {}, causeMore: object = {}) => ({
  evId,
  name: `event ${evId}`,
  actions: { cloud: { sendPush: true } },
  causes: [{ sId: '0x1', thresholds, ...causeMore }],
  ...more,
});

const purpose = (name: string, events: object[], others: object[] = []) => ({
  puId: 1,
  initStId: 1,
  name,
  states: [{ stId: 1, name: 'cold', events }, ...others],
});

async function store(purposes: object[]) {
  const { rows } = await database.db.query<{ limits: object[]; names: object[] }>(
    `with owner as (
       insert into account (email, password_hash)
       values (gen_random_uuid() || '@example.com', 'none') returning id)
     insert into profile_content (account_id, hash, bytes, purposes)
     select id, '', 1, $1::text::json from owner
     returning limits, state_names as names`,
    [JSON.stringify(purposes)],
  );
  return rows[0];
}

test('plain limits and the names of states are kept beside the content of a profile', async () => {
  const limit = { sId: '0x1', puId: 1, stId: 1, name: '', above: null, below: null };
  const events = [
    event(1, { isGt: 8.5 }),
    event(2, { isLt: -1e300 }, { name: undefined }),
    event(3, { isGt: 1, isLt: 9 }),
    event(4, { isOneOf: [1] }),
    event(5, { isGt: 1 }, { actions: {} }),
    event(6, { isGt: 1 }, { actions: { alarm: true } }),
    event(7, { isGt: 1 }, { actions: { cloud: { sendPush: true }, alarm: false } }),
    event(8, { isGt: 1 }, {}, { threshold: { relative: true } }),
    event(9, { isGt: 1 }, {}, { threshold: { over: { ms: 60_000 } } }),
    event(10, { isGt: 1 }, { actions: { sms: [] } }),
    // Back to the first state: "cold again" is no alarm.
    event(11, { isLt: 1 }, { actions: { cloud: { sendPush: true }, engine: { gotoStId: 1 } } }),
  ];
  expect(await store([purpose('freezer', events)])).toEqual({
    limits: [
      { ...limit, evId: 1, name: 'event 1', above: 8.5 },
      { ...limit, evId: 2, below: -1e300 },
      { ...limit, evId: 6, name: 'event 6', above: 1 },
      { ...limit, evId: 10, name: 'event 10', above: 1 },
    ],
    names: [],
  });
  const warm = { stId: 2, name: 'warm', events: [] };
  expect((await store([purpose('freezer', [], [warm])]))?.names).toEqual([
    { puId: 1, stId: 1, name: 'cold' },
    { puId: 1, stId: 2, name: 'warm' },
  ]);
});

test('nothing is said of purposes with text that the database cannot read', async () => {
  const warm = { stId: 2, name: '\ud800', events: [] };
  for (const name of ['\u0000', 'freezer'])
    expect(await store([purpose(name, [event(1, { isGt: 8 })], [warm])])).toEqual({
      limits: [],
      names: [],
    });
});
