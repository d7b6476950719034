import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDatabaseSessions } from '../../src/sessions/database.ts';
import { startRedisSessions } from '../../src/sessions/redis.ts';
import type { Session, SessionStore } from '../../src/sessions/store.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';

const onError = () => {};

describe.each(canOpenRedis ? ['database', 'redis'] : ['database'])('the %s store', (kind) => {
  let database: TestDatabase;
  let redis: OpenRedis | undefined;
  let store: SessionStore;
  let owner: { accountId: number; accountUuid: string };
  beforeAll(async () => {
    database = await testDatabase();
    redis = kind === 'redis' ? await openRedis() : undefined;
    store = redis
      ? await startRedisSessions({ url: redis.url, onError })
      : startDatabaseSessions(database.db, { believedTs: Date.now, onError });
    owner = await newOwner();
  });
  afterAll(async () => {
    await store.close();
    await redis?.close();
    await database.drop();
  });

  async function newOwner() {
    const { rows } = await database.db.query<{ accountId: number; accountUuid: string }>(
      `insert into account (email, password_hash) values ($1, '')
       returning id as "accountId", uuid as "accountUuid"`,
      [`${randomUUID()}@example.com`],
    );
    return rows[0] as { accountId: number; accountUuid: string };
  }
  const nowTs = Date.now();
  const newSession = (over: Partial<Session> = {}): Session => ({
    ...owner,
    sessionId: randomUUID(),
    kind: 'pair',
    createdTs: nowTs,
    lastUsedTs: nowTs,
    expiresTs: nowTs + 60_000,
    ...over,
  });
  async function create(over: Partial<Session> = {}, limit = 1_000) {
    const session = newSession(over);
    await store.create(session, { refreshHash: 'first', limit });
    return session;
  }
  const rotate = (session: Session, oldHash: string, newHash: string, atTs = nowTs) =>
    store.rotate(
      { ...session, lastUsedTs: atTs, expiresTs: atTs + 90_000 },
      { oldHash, newHash, successor: `after ${oldHash}: ${newHash}` },
    );
  const find = (session: Session, atTs = nowTs) => store.find(session.sessionId, atTs);

  test('returns what was stored, until it expires', async () => {
    const session = await create();
    expect(await find(session)).toEqual(session);
    expect(await find(session, session.expiresTs - 1)).toEqual(session);
    expect(await find(session, session.expiresTs)).toBeNull();
    expect(await store.find(randomUUID(), nowTs)).toBeNull();
  });

  test('answers many look-ups at once, each with its own session', async () => {
    const sessions = await Promise.all(Array.from({ length: 30 }, () => create()));
    const asked = [...sessions, ...sessions, newSession()];
    const found = await Promise.all(asked.map((session) => find(session)));
    expect(found).toEqual([...sessions, ...sessions, null]);
  });

  test('extends live sessions, and never revives a revoked one', async () => {
    const session = await create();
    const later = { ...session, lastUsedTs: nowTs + 10, expiresTs: nowTs + 120_000 };
    await store.touch(later);
    expect(await find(session)).toEqual(later);
    await store.revoke(session.accountId, session.sessionId);
    await store.touch(later);
    expect(await find(session)).toBeNull();
  });

  test('never shortens a session', async () => {
    const session = await create();
    const later = { ...session, lastUsedTs: nowTs + 20, expiresTs: nowTs + 120_000 };
    await store.touch(later);
    await store.touch({ ...session, lastUsedTs: nowTs + 10, expiresTs: nowTs + 90_000 });
    expect(await find(session)).toEqual(later);
  });

  test('replaces a refresh token once; a second use later than 10 s revokes', async () => {
    const session = await create();
    const [rotated, reused] = [{ outcome: 'rotated' }, { outcome: 'reused' }];
    expect(await rotate(session, 'first', 'second', nowTs + 1)).toEqual(rotated);
    const slid = { ...session, lastUsedTs: nowTs + 1, expiresTs: nowTs + 90_001 };
    expect(await find(session)).toEqual(slid);
    expect(await rotate(session, 'second', 'third', nowTs + 2)).toEqual(rotated);
    expect(await rotate(session, 'second', 'lost', nowTs + 10_002)).toEqual(reused);
    expect(await find(session)).toBeNull();
    expect(await rotate(session, 'third', 'fourth')).toEqual({ outcome: 'unknown' });
    expect(
      (await store.list(session.accountId, nowTs)).map(({ sessionId }) => sessionId),
    ).not.toContain(session.sessionId);
  });

  test('returns the same successor for 10 s, which its use does not extend', async () => {
    const session = await create();
    await rotate(session, 'first', 'second');
    const again = { outcome: 'again', successor: 'after first: second' };
    for (const ms of [0, 5_000, 9_999]) {
      expect(await rotate(session, 'first', `late ${ms}`, nowTs + ms)).toEqual(again);
    }
    expect(await find(session)).toMatchObject({ lastUsedTs: nowTs });
    expect(await rotate(session, 'first', 'late', nowTs + 10_000)).toEqual({ outcome: 'reused' });

    const other = await create();
    await rotate(other, 'first', 'second');
    await rotate(other, 'second', 'third');
    // Its successor has been used, so somebody else has the token.
    expect(await rotate(other, 'first', 'late')).toEqual({ outcome: 'reused' });
  });

  test('of parallel rotations with one token one succeeds, and the others get its answer', async () => {
    const session = await create();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) => rotate(session, 'first', `next ${i}`)),
    );
    const first = outcomes.findIndex(({ outcome }) => outcome === 'rotated');
    const again = { outcome: 'again', successor: `after first: next ${first}` };
    expect(outcomes.toSpliced(first, 1)).toEqual(Array.from({ length: 49 }, () => again));
  });

  test('makes space: never used ones end first, then the least recently used', async () => {
    const mine = await newOwner();
    const make = (createdTs: number, lastUsedTs: number, limit: number) =>
      create({ ...mine, createdTs, lastUsedTs }, limit);
    const used = await make(nowTs - 50, nowTs - 10, 5);
    const usedLongAgo = await make(nowTs - 40, nowTs - 30, 5);
    const unusedOld = await make(nowTs - 90, nowTs - 90, 5);
    const unusedNew = await make(nowTs - 5, nowTs - 5, 5);
    const alive = async () => {
      const all = [used, usedLongAgo, unusedOld, unusedNew];
      return Promise.all(all.map(async (session) => (await find(session)) !== null));
    };
    const another = newSession(mine);
    expect(await store.create(another, { limit: 4 })).toEqual([unusedOld.sessionId]);
    expect(await alive()).toEqual([true, true, false, true]);
    await store.touch({ ...another, lastUsedTs: nowTs + 1 });
    expect(await store.create(newSession(mine), { limit: 3 })).toEqual(
      expect.arrayContaining([unusedNew.sessionId, usedLongAgo.sessionId]),
    );
    expect(await alive()).toEqual([true, false, false, false]);
    expect(await find(another)).not.toBeNull();
  });

  test('parallel logins leave no more sessions than allowed', async () => {
    const mine = await newOwner();
    const before = await create({ ...mine, lastUsedTs: nowTs + 5 });
    const made = await Promise.all(Array.from({ length: 40 }, () => create(mine, 7)));
    const left = await store.list(mine.accountId, nowTs);
    expect(left).toHaveLength(7);
    expect(left).toContainEqual(before);
    const found = await Promise.all(made.map((session) => find(session)));
    expect(found.filter((session) => session !== null)).toHaveLength(6);
  });

  test('lists and revokes by account', async () => {
    const mine = await newOwner();
    const older = await create({ ...mine, createdTs: nowTs - 5, kind: 'account' });
    const newer = await create(mine);
    const ended = await create({ ...mine, createdTs: nowTs - 9, expiresTs: nowTs + 5_000 });
    const others = await create();
    expect(await store.list(mine.accountId, nowTs + 6_000)).toEqual([newer, older]);
    expect(await store.revoke(others.accountId, older.sessionId)).toBe(false);
    expect(await store.revoke(mine.accountId, older.sessionId)).toBe(true);
    expect(await store.revoke(mine.accountId, older.sessionId)).toBe(false);
    await store.revokeAll(mine.accountId);
    expect(await store.list(mine.accountId, nowTs)).toEqual([]);
    expect([await find(older), await find(newer), await find(ended)]).toEqual([null, null, null]);
    expect(await find(others)).toEqual(others);
  });
});
