import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeUnusedProfiles } from '../../src/profiles/queries.ts';
import { purpose, startApp, untilTaken, type App } from '../devices/app.ts';
import { databaseKinds } from '../support/database.ts';
import { shareOf } from '../support/share.ts';

describe.each(shareOf(databaseKinds))('installed profiles, on %s', (kind) => {
  const quotas = { profiles: 10, profileBytesTotal: 4_000 };
  let one: App;
  let other: App;
  beforeAll(async () => {
    one = await startApp({ kind, quotas });
    other = await startApp({ beside: one.database, quotas });
  });
  afterAll(async () => {
    await other?.close();
    await one?.close();
  });

  const contents = async (token: string) => {
    const { rows } = await one.db.query<{ bytes: number }>(
      'select bytes from profile_content where account_id = $1',
      [token],
    );
    return rows.map(({ bytes }) => bytes);
  };
  const usage = async (token: string) => {
    const { rows } = await one.db.query(
      'select profiles, profile_bytes from account_usage where account_id = $1',
      [token],
    );
    return rows[0];
  };
  const install = (app: App, token: string, uuids: string[], purposes: unknown[]) =>
    app.call('POST', '/v2/devices/profile', {
      token,
      body: { deviceAuthUuids: uuids, purposes },
    });
  const devicesOf = (token: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => one.device(token)));

  const slow = { timeout: 240_000 };
  it('are exactly as many as the quota, after 300 installs at two processes', slow, async () => {
    const token = await one.account();
    const devices = await devicesOf(token, 300);
    const bare = (puId: number) => ({ puId, initStId: 1, states: [{ stId: 1, events: [] }] });
    const answers = await Promise.all(
      devices.map(({ uuid }, i) =>
        untilTaken(() => install(i % 2 ? one : other, token, [uuid], [bare(100 + i)])),
      ),
    );
    const refused = answers.filter(({ status }) => status === 403);
    const counts = Object.entries(Object.groupBy(answers, ({ status }) => status));
    expect(Object.fromEntries(counts.map(([status, of]) => [status, of?.length]))).toEqual({
      200: 10,
      403: 290,
    });
    expect(refused[0]?.body).toMatchObject({ quota: 'profiles', limit: 10, used: 10 });
    expect(await contents(token)).toHaveLength(10);
    const { rows } = await one.db.query('select from profile where account_id = $1', [token]);
    expect(rows).toHaveLength(10);
  });

  it('that are equal count once and are stored once', async () => {
    const token = await one.account();
    const devices = await devicesOf(token, 40);
    const answers = await Promise.all(
      devices.map(({ uuid }, i) => install(i % 2 ? one : other, token, [uuid], [purpose(1)])),
    );
    expect(answers.map(({ status }) => status)).toEqual(devices.map(() => 200));
    expect(new Set(answers.map(({ body }) => body['pId'])).size).toBe(40);
    const [bytes, ...more] = await contents(token);
    expect(more).toEqual([]);
    expect(await usage(token)).toEqual({ profiles: 1, profile_bytes: bytes });
    // Another account stores its own.
    const stranger = await one.account();
    await one.install(stranger, [(await one.device(stranger)).uuid], [purpose(1)]);
    expect(await contents(stranger)).toHaveLength(1);
  });

  it('share one limit of bytes', async () => {
    const token = await one.account();
    const { uuid } = await one.device(token);
    const states = [{ stId: 1, name: 'x'.repeat(150), events: [] }];
    const large = (puId: number) => ({ puId, initStId: 1, states });
    const many = Array.from({ length: 30 }, (_, puId) => large(puId));
    const { body } = await install(one, token, [uuid], many);
    expect(body).toMatchObject({ quota: 'profileBytesTotal', limit: 4_000, used: 0 });
  });

  it('that no device needs any more are removed, and the states of their roll-out stay', async () => {
    const token = await one.account();
    const { uuid } = await one.device(token);
    const pIds: string[] = [];
    // Each supersedes the previous one, which was pending: there is always room for the next.
    for (let n = 0; n < 25; n += 1) pIds.push(await one.install(token, [uuid], [purpose(n)]));
    expect((await contents(token)).length).toBeLessThanOrEqual(10);
    await removeUnusedProfiles(one.db, new AbortController().signal);
    const [bytes, ...more] = await contents(token);
    expect(more).toEqual([]);
    expect(await usage(token)).toEqual({ profiles: 1, profile_bytes: bytes });
    const states = await Promise.all(
      pIds.map(async (pId) => {
        const { body } = await one.call('GET', `/v2/devices/profile/${pId}`, { token });
        return (body['devices'] as { state: string }[])[0]?.state;
      }),
    );
    expect(states).toEqual([...pIds.slice(1).map(() => 'superseded'), 'pending']);
    const { body } = await one.call('GET', `/v2/devices/${uuid}/configuration`, { token });
    expect(body).toMatchObject({ pendingProfile: { pId: pIds.at(-1) } });
  });

  it('are not removed during an install of an equal one', async () => {
    const token = await one.account();
    const { uuid } = await one.device(token);
    const signal = new AbortController().signal;
    for (let round = 0; round < 10; round += 1) {
      const installs = [0, 1, 2, 3].map((n) => other.install(token, [uuid], [purpose(n % 2)]));
      await Promise.all([...installs, removeUnusedProfiles(one.db, signal)]);
      const { body } = await one.call('GET', `/v2/devices/${uuid}/configuration`, { token });
      expect(body).toMatchObject({ pendingProfile: { purposes: [expect.anything()] } });
    }
  });
});
