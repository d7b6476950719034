import { expect } from 'vitest';
import { ask, openAccount, type Answer } from '../idempotency/repeat.ts';
import { configuration } from '../journeys/app.ts';
import { testService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';

export type JobWorld = Awaited<ReturnType<typeof startJobWorld>>;

/** A service, and what a test does with an account's devices and jobs. `token` is the account's. */
export async function startJobWorld() {
  const service = await testService();
  const db = openTestDatabase(service.databaseUrl);
  const { url } = service;
  const mine = { token: '' };

  const get = (path: string, token = mine.token) => ask(url, { method: 'GET', path, token });

  async function register(count: number, name = 'device'): Promise<string[]> {
    const devices = Array.from({ length: count }, (_, n) => ({
      ...configuration,
      device: { name: `${name} ${n}` },
    }));
    const answer = await ask(url, { ...mine, path: '/v2/devices/batch', body: { devices } });
    const registered = answer.body['devices'] as { deviceAuthUuid: string }[];
    return registered.map(({ deviceAuthUuid }) => deviceAuthUuid);
  }

  /** The job that was started, once it has ended. */
  async function finished({ status, text, body }: Answer, token = mine.token) {
    expect(status, text).toBe(200);
    const path = pathOf(body);
    const state = async () => (await get(path, token)).body['state'];
    await expect.poll(state, { timeout: 60_000 }).not.toBe('running');
    return (await get(path, token)).body;
  }

  async function labelsByUuid(): Promise<Map<string, string[]>> {
    const { body } = await get('/v2/devices');
    const devices = body['devices'] as { uuid: string; labels: string[] }[];
    return new Map(devices.map(({ uuid, labels }) => [uuid, labels]));
  }

  async function makeKey(given: object): Promise<string> {
    const body = { name: 'a program', ...given };
    const answer = await ask(url, { ...mine, path: '/v2/accounts/keys', body });
    return String(answer.body['key']);
  }

  return Object.assign(mine, {
    url,
    db,
    get,
    register,
    finished,
    labelsByUuid,
    makeKey,
    openAccount: async () => void (mine.token = await openAccount(url)),
    stop: (path: string, token = mine.token) => ask(url, { method: 'DELETE', path, token }),
    act: (body: unknown, token = mine.token) =>
      ask(url, { path: '/v2/devices/actions', token, body }),
    preview: (body: unknown, token = mine.token) =>
      ask(url, { path: '/v2/devices/actions/preview', token, body }),
    /** No job runs during `work`, as if another process were running one. */
    whileNoneRuns: (work: () => Promise<void>) =>
      db.transaction(async (tx) => {
        await tx.query('select pg_advisory_xact_lock(7212)');
        await work();
      }),
    async close() {
      await db.close();
      await service.close();
    },
  });
}

/** The path of a started job. */
export const pathOf = (body: Record<string, unknown>) => `/v2/jobs/${String(body['jobId'])}`;
