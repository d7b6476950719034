import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDatabaseSessions } from '../../src/sessions/database.ts';
import { startRedisSessions } from '../../src/sessions/redis.ts';
import type { Session, SessionStore } from '../../src/sessions/sessions.ts';
import { testDatabase, type TestDatabase } from '../harness/database.ts';
import { hasRedis, type Redis, startRedis } from '../harness/redis.ts';

const onError = () => {};

describe.each(hasRedis ? ['database', 'redis'] : ['database'])('the %s store', (kind) => {
  let database: TestDatabase;
  let redis: Redis | undefined;
  let store: SessionStore;
  let owner: { accountId: number; accountUuid: string };
  beforeAll(async () => {
    database = await testDatabase();
    redis = kind === 'redis' ? await startRedis() : undefined;
    store = redis
      ? await startRedisSessions({ url: redis.url, onError })
      : startDatabaseSessions(database.db, { onError });
    owner = await newOwner();
  });
  afterAll(async () => {
    await store.close();
    await redis?.kill();
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
  async function create(over: Partial<Session> = {}, hash = 'first') {
    const session = newSession(over);
    await store.create(session, hash);
    return session;
  }
  const find = (session: Session, atTs = nowTs) => store.find(session.sessionId, atTs);

  test('gives back what was put in, until it runs out', async () => {
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

  test('slides what lives, and never brings back what was revoked', async () => {
    const session = await create();
    const later = { ...session, lastUsedTs: nowTs + 10, expiresTs: nowTs + 120_000 };
    await store.touch(later);
    expect(await find(session)).toEqual(later);
    await store.revoke(session.accountId, session.sessionId);
    await store.touch(later);
    expect(await find(session)).toBeNull();
  });

  test('replaces a refresh token once; the second use revokes', async () => {
    const session = await create();
    const slid = { ...session, lastUsedTs: nowTs + 1, expiresTs: nowTs + 90_000 };
    expect(await store.rotate(slid, 'first', 'second')).toBe('rotated');
    expect(await find(session)).toEqual(slid);
    expect(await store.rotate(slid, 'second', 'third')).toBe('rotated');
    expect(await store.rotate(slid, 'first', 'fourth')).toBe('reused');
    expect(await find(session)).toBeNull();
    expect(await store.rotate(slid, 'third', 'fourth')).toBe('unknown');
    expect(
      (await store.list(session.accountId, nowTs)).map(({ sessionId }) => sessionId),
    ).not.toContain(session.sessionId);
  });

  test('of parallel rotations with one token exactly one succeeds', async () => {
    const session = await create();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) => store.rotate(session, 'first', `next ${i}`)),
    );
    const counted = Object.groupBy(outcomes, (outcome) => outcome);
    expect(counted.rotated).toHaveLength(1);
    expect(counted.reused).toHaveLength(1);
    expect(counted.unknown).toHaveLength(48);
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
