import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listKnownMigrations } from '../../src/db/baseline.ts';
import { migrate } from '../../src/db/migrate.ts';
import { silent } from '../db/earlier.ts';
import { runOn, schema } from '../support/template.ts';
import { fixtures } from './cases.ts';
import type { Fixture } from './fixture.ts';
import { install, type Installation } from './install.ts';

const known = (await listKnownMigrations()).map(({ name }) => name);
const spans = known.indexOf('000048_former-profiles');

let installation: Installation;
let earlier: pg.Client;
beforeEach(async () => {
  installation = await install(
    fixtures.find(({ version }) => version === '0.4.0') as Fixture,
    'postgresql',
  );
  await migrate(url(), { log: silent, count: spans });
  earlier = new pg.Client(url());
  await earlier.connect();
  await earlier.query(`set search_path to ${schema}, public`);
});
afterEach(async () => {
  await earlier.end();
  await installation.remove();
});

const url = () => installation.variables['DATABASE_URL'] as string;

/** Of each device: the profile that is current, and those whose span is open. */
const listOpen = () =>
  runOn(url(), async (client) => {
    await client.query(`set search_path to ${schema}, public`);
    const { rows } = await client.query<{ current: string | null; open: string | null }>(`
      select (select string_agg(profile_id::text || ' ' || changed_at, ',' order by profile_id) from device_profile dp
               where dp.device_id = d.id and state = 'current') as current,
             (select string_agg(profile_id::text || ' ' || from_at, ',' order by profile_id) from device_profile_span s
               where s.device_id = d.id and until_at is null) as open
        from device d order by d.id`);
    return rows;
  });

const countWaiting = () =>
  runOn(url(), async (client) => {
    const { rows } = await client.query(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length;
  });

test('a profile that an earlier version made current while spans were first read has one', async () => {
  await earlier.query('begin');
  const { rowCount } = await earlier.query(
    `update device_profile set state = 'replaced' where state = 'current'`,
  );
  const { rowCount: current } = await earlier.query(
    `update device_profile dp set state = 'current', changed_at = '2026-11-24 12:00Z'
      where state in ('pending', 'sent')
        and profile_id = (select min(profile_id::text)::uuid from device_profile o
                           where o.device_id = dp.device_id and state in ('pending', 'sent'))`,
  );
  expect([rowCount, current].every((count) => (count ?? 0) > 0)).toBe(true);
  const migrated = migrate(url(), { log: silent, count: spans + 1 });
  await expect.poll(countWaiting).toBe(1);
  await earlier.query('commit');
  await migrated;
  // The gap is there.
  expect((await listOpen()).some((device) => device.current !== device.open)).toBe(true);

  await migrate(url(), { log: silent });
  const after = await listOpen();
  expect(after.map(({ open }) => open)).toEqual(after.map((device) => device.current));
  expect(after.some((device) => device.current !== null)).toBe(true);
});
