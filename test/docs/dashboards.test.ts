import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, openApp, thresholdPurpose, type App } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { databaseKinds } from '../support/database.ts';
import { schema } from '../support/template.ts';
import { blocksOf, getSection, readProjectFile } from './readme.ts';

const page = 'docs/dashboards.md';
const role = 'sensorium_reports';

/** A service with a device that has measured, has fired and is in alarm. */
async function startMeasured(kind: (typeof databaseKinds)[number]) {
  const service = await testService({}, { kind });
  const app = await openApp(service.url);
  const device = await app.call<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid } = device;
  await app.call('PUT', `/v2/devices/${deviceAuthUuid}/labels`, { labels: ['cellar'] });
  const [state] = thresholdPurpose(1, 30).states;
  const events = state?.events.map((event) => ({ ...event, actions: { alarm: true } }));
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [deviceAuthUuid],
    purposes: [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }],
  });
  const client = await connectDevice(device);
  await client.publish('up/measurements', [
    { sId: '0x01', val: 31 },
    { sId: '0x02', val: { lat: 47.37, long: 8.54 } },
  ]);
  await client.end();
  return { service, app, device };
}

describe('the dashboard of Grafana', () => {
  let measured: { service: TestService; app: App };
  beforeAll(async () => void (measured = await startMeasured('postgresql')));
  afterAll(() => measured?.service.close());

  type Target = { url: string; root_selector: string; columns: { selector: string }[] };
  const { panels } = JSON.parse(readProjectFile('examples/apps/grafana-dashboard.json')) as {
    panels: { title: string; targets: [Target] }[];
  };

  it.each(panels.map((panel) => [panel.title, panel.targets[0]] as const))(
    'queries what exists: %s',
    async (_, { url, root_selector: root, columns }) => {
      const { service, app } = measured;
      const [body = ''] = /\{ "name": "Grafana".*\}/.exec(getSection('Grafana', page)) ?? [];
      const { key } = await app.call<{ key: string }>(
        'POST',
        '/v2/accounts/keys',
        JSON.parse(body),
      );
      const values: Record<string, string> = {
        service: service.url,
        label: 'cellar',
        bucket: '15m',
        __from: String(Date.now() - 86_400_000),
        __to: String(Date.now() + 60_000),
      };
      const filled = url.replaceAll(/\$\{(\w+)\}/g, (all, name: string) => values[name] ?? all);
      const answer = await fetch(filled, { headers: { Authorization: `Bearer ${key}` } });
      const rows = ((await answer.json()) as Record<string, object[]>)[root] ?? [];
      expect(rows.length).toBeGreaterThan(0);
      for (const { selector } of columns) expect(rows[0]).toHaveProperty(selector);
    },
  );
});

describe.each(databaseKinds)('SQL for the operator, on %s', (kind) => {
  let service: TestService;
  let device: Registration;
  let owner: pg.Client;
  let reader: pg.Client;
  const section = getSection('SQL for the operator', page);
  const [makeRole = '', makeViews = '', examples = ''] = blocksOf(section, 'sql');
  beforeAll(async () => {
    ({ service, device } = await startMeasured(kind));
    owner = new pg.Client(service.databaseUrl);
    await owner.connect();
    await owner.query(makeRole);
    // Twice, because it is run again after each upgrade.
    for (const sql of [makeViews, makeViews])
      await owner.query(sql.replace('sensorium_0_2_0', schema));
    const url = new URL(service.databaseUrl);
    [url.username, url.password] = [role, 'choose one'];
    reader = new pg.Client(url.href);
    await reader.connect();
  });
  afterAll(async () => {
    await reader?.end();
    await owner?.query('drop schema if exists reporting cascade');
    await owner?.query(`drop role if exists ${role}`);
    await owner?.end();
    await service?.close();
  });

  const views = [...makeViews.matchAll(/^create view (reporting\.\w+)/gm)].map(([, name]) => name);
  const codeOf = (sql: string) =>
    reader.query(sql).then(
      () => 'done',
      ({ code }: { code?: string }) => code,
    );

  it('shows devices, measurements, events and alarms', async () => {
    const { rows: measurements } = await reader.query(
      'select device, sense, val, lat, long from measurements order by sense',
    );
    const uuid = device.deviceAuthUuid;
    expect(measurements).toEqual([
      { device: uuid, sense: '0x01', val: 31, lat: null, long: null },
      { device: uuid, sense: '0x02', val: null, lat: 47.37, long: 8.54 },
    ]);
    const { rows: devices } = await reader.query(
      'select device, name, serial, labels from devices',
    );
    expect(devices).toEqual([
      { device: uuid, name: 'Greenhouse', serial: '7', labels: ['cellar'] },
    ]);
    const { rows: events } = await reader.query("select event from events where type = 'sense'");
    expect(events).toEqual([{ event: 5 }]);
    const { rows: alarms } = await reader.query('select event_name, closed_at from alarms');
    expect(alarms).toEqual([{ event_name: 'too warm', closed_at: null }]);
    await reader.query(examples);
  });

  it('shows no other table, and no secret of those', async () => {
    const { rows } = await owner.query<{ name: string; readable: boolean }>(
      `select format('%I.%I', n.nspname, c.relname) as name,
              has_any_column_privilege('${role}', c.oid, 'select') as readable
         from pg_class c
         join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 'f')
          and n.nspname !~ '^(pg_|information_schema|timescaledb_|_timescaledb_(cache|catalog|config|debug|functions))'
          and (n.nspname <> '_timescaledb_internal' or c.relname ~ 'hyper_')`,
    );
    const readable = rows.filter((row) => row.readable).map(({ name }) => name);
    expect(readable.toSorted()).toEqual(views.toSorted());
    const names = rows.map(({ name }) => name);
    const secret = ['account', 'api_key', 'device', 'contact'].map((name) => `${schema}.${name}`);
    expect(names).toEqual(expect.arrayContaining(secret));
    expect(await codeOf(`select password_hash from ${schema}.account`)).toBe('42501');

    const { rows: accounts } = await owner.query<{ email: string; password_hash: string }>(
      `select email, password_hash from ${schema}.account`,
    );
    expect(accounts).toHaveLength(1);
    for (const view of views) {
      const { rows: shown } = await reader.query(`select * from ${view}`);
      const text = JSON.stringify(shown);
      for (const value of Object.values(accounts[0] ?? {})) expect(text).not.toContain(value);
      expect(text).not.toContain(device.deviceAuthToken);
    }
  });

  it('allows no writing, even after its own limits are lifted', async () => {
    expect(await codeOf('create temporary table mine (x integer)')).toBe('25006');
    await reader.query('set default_transaction_read_only = off');
    for (const view of views) {
      // 55000: a view of several tables cannot be written at all.
      expect(await codeOf(`delete from ${view}`)).toMatch(/^(42501|55000)$/);
      expect(await codeOf(`insert into ${view} default values`)).toMatch(/^(42501|55000)$/);
    }
    const refused = [
      'create table public.mine (x integer)',
      'create table reporting.mine (x integer)',
      'create schema mine',
      'create role mine',
      `delete from ${schema}.measurement`,
      `update ${schema}.device set name = ''`,
      `set role "${owner.user}"`,
      "select pg_read_file('postgresql.conf')",
    ];
    for (const sql of refused) expect([sql, await codeOf(sql)]).toEqual([sql, '42501']);
  });

  it('is not for accounts: with compressed tables there is no row-level security', async () => {
    await owner.query('begin');
    const enabling = owner.query(`alter table ${schema}.measurement enable row level security`);
    const code = await enabling.then(
      () => 'done',
      (error: { code?: string }) => error.code,
    );
    await owner.query('rollback');
    expect(code).toBe(kind === 'timescaledb' ? '0A000' : 'done');
  });

  it('leaves nothing behind', async () => {
    await reader.end();
    const [, commands = ''] = /To take the role away: `([^`]+)`/.exec(section) ?? [];
    await owner.query(commands);
    const { rows } = await owner.query('select from pg_roles where rolname = $1', [role]);
    expect(rows).toEqual([]);
  });
});
