import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { openClient } from '../support/template.ts';
import { openApp, type App } from './app.ts';
import { testService, type TestService } from './service.ts';

/** Far more than the pool has connections. */
const atOnce = 60;

let service: TestService;
let greedy: App;
let other: App;

beforeAll(async () => {
  // A busy machine may take long for all this, and the queries that wait for the row must not be cancelled meanwhile.
  const change = (config: Config): Config => ({
    ...config,
    database: { ...config.database, statementTimeoutMs: 100_000 },
  });
  service = await testService({}, { change });
  greedy = await openApp(service.url);
  other = await openApp(service.url);
});
afterAll(() => service.close());

/** Asks again while a busy machine makes the database seem away (503). Throws unless it gets 200 in the end. */
async function ask(app: App, ...request: Parameters<App['call']>): Promise<unknown> {
  for (;;)
    try {
      return await app.call(...request);
    } catch (error) {
      if (!String(error).includes('503')) throw error;
    }
}

it('an account whose requests wait in the database leaves connections to others, to logins and to probes', async () => {
  const client = openClient(service.databaseUrl);
  await client.connect();
  const waiting = async () => {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count;
  };
  const changes: Promise<unknown>[] = [];
  try {
    await client.query('begin');
    await client.query('select from account where email = $1 for update', [greedy.email]);
    for (let n = 0; n < atOnce; n += 1)
      changes.push(ask(greedy, 'PUT', '/v2/accounts', { name: `name ${n}` }));
    // A quarter of the 16 that accounts share.
    await expect.poll(waiting).toBe(4);
    const credentials = { email: other.email, password: 'correct horse battery' };
    // Without a free connection, none of them would be answered before the row is unlocked.
    await Promise.all([
      ...Array.from({ length: 3 }, () => ask(other, 'GET', '/v2/devices?counts=true')),
      ask(other, 'PUT', '/v2/accounts', { name: 'other' }),
      ask(other, 'POST', '/v2/accounts/login', credentials),
      ask(other, 'GET', '/readyz'),
    ]);
    expect(await ask(other, 'GET', '/v2/status')).toMatchObject({ status: 'online' });
    await expect.poll(waiting).toBe(4);
  } finally {
    // Rolls back, so that a second try finds the row unlocked.
    await client.end();
    await Promise.all(changes);
  }
});
