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
  // However long a busy machine takes for all of this: what waits for the row is not to be cancelled meanwhile.
  const change = (config: Config): Config => ({
    ...config,
    database: { ...config.database, statementTimeoutMs: 100_000 },
  });
  service = await testService({}, { change });
  greedy = await openApp(service.url);
  other = await openApp(service.url);
});
afterAll(() => service.close());

it('whoever waits in the database with many requests leaves it to others, to logins and to probes', async () => {
  const client = openClient(service.databaseUrl);
  await client.connect();
  await client.query('begin');
  await client.query('select from account where email = $1 for update', [greedy.email]);
  const changes = Array.from({ length: atOnce }, (_, n) =>
    greedy.call('PUT', '/v2/accounts', { name: `name ${n}` }),
  );
  const all = Promise.all(changes);
  all.catch(() => undefined);
  const waiting = async () => {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.count;
  };
  // A quarter of the 16 that accounts share.
  await expect.poll(waiting).toBe(4);
  const credentials = { email: other.email, password: 'correct horse battery' };
  // Each throws unless it is answered 200.
  await Promise.all([
    ...Array.from({ length: 3 }, () => other.call('GET', '/v2/devices?counts=true')),
    other.call('PUT', '/v2/accounts', { name: 'other' }),
    other.call('POST', '/v2/accounts/login', credentials),
    other.call('GET', '/readyz'),
  ]);
  expect(await other.call('GET', '/v2/status')).toMatchObject({ status: 'online' });
  expect(await waiting()).toBe(4);
  await client.query('commit');
  await client.end();
  await all;
});
