import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { call, registerAccount, registerDevices } from '../api.ts';
import { createFleet } from '../client/fleet.ts';
import { schemaOf, withClient } from '../database.ts';
import { specsOf } from '../fleets.ts';
import type { BenchService } from '../service.ts';

/** How long a device must be silent until it is due. */
const silenceMs = 1_000;

/** Arming all of them, and cleaning up after it, takes less. */
const armedMs = 30_000;

/** An event that a silence completes, and whose first firing is recorded. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 77,
          eventLog: true,
          causes: [{ sId: '0x01', threshold: { noneForMs: silenceMs } }],
        },
      ],
    },
  ],
};

export type SilentDevices = {
  /** Makes all of them fall due half a minute later, and waits for that. */
  fallDue(): Promise<{
    untilEvaluated(): Promise<void>;
    /** Throws unless each of them was recorded. */
    expectAll(): Promise<void>;
  }>;
};

/**
 * Devices that sent once and have been silent since. One sends to the service, and its rows are copied, so that they
 * are what the service itself would have stored.
 */
export async function silentDevices(
  service: BenchService,
  databaseUrl: string,
  count: number,
): Promise<SilentDevices> {
  const uuid = await sendOnce(service);
  const schema = await schemaOf(databaseUrl);
  const run = <T extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
    withClient(databaseUrl, async (client) => {
      await client.query(`set search_path to ${schema}, public`);
      return client.query<T>(text, values);
    });
  // Before its own tick is due.
  await run(keepSql, [uuid]);
  await run(cloneSql, [uuid, count]);
  await run('vacuum analyze');
  const countOf = async (text: string) => Number((await run<{ n: string }>(text)).rows[0]?.n);
  // Uses the service's index and reads one row only, so that looking is not what is measured.
  const isSomeDue = async () => (await run(someDueSql)).rows.length > 0;
  const countEvents = () =>
    countOf(`select count(*) as n from event where body::text like '%"evId":77%'`);
  return {
    async fallDue() {
      const dueMs = performance.now() + armedMs;
      await run(armSql, [uuid, armedMs]);
      const before = await countEvents();
      // Vacuums what arming them left, so that it is not part of the measurement.
      for (const table of ['device_state', 'device_due']) await run(`vacuum ${table}`);
      await run('checkpoint');
      await delay(dueMs - performance.now());
      while (!(await isSomeDue())) await delay(20);
      return {
        async untilEvaluated() {
          while (await isSomeDue()) await delay(500);
        },
        async expectAll() {
          const fired = (await countEvents()) - before;
          if (fired !== count) throw new Error(`${fired} of ${count} silences were recorded.`);
        },
      };
    },
  };
}

async function sendOnce(service: BenchService): Promise<string> {
  const { token } = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, token, 1);
  const uuid = devices[0]?.uuid ?? '';
  const body = { deviceAuthUuids: [uuid], purposeUuids: [], purposes: [purpose] };
  await call(service.baseUrl, 'POST', '/v2/devices/profile', { token, body });
  const fleet = createFleet({
    host: '127.0.0.1',
    port: service.mqttPort,
    devices: specsOf(devices),
    payload: (_device, seq) => (seq === 0 ? JSON.stringify({ sId: '0x01', val: 20 }) : null),
  });
  await fleet.connect();
  fleet.start();
  await fleet.stop(10_000);
  await fleet.close();
  return uuid;
}

const someDueSql = `
  select from device_due where coalesce(retry_at, due_at) <= now() order by coalesce(retry_at, due_at) limit 1`;

const template = `
  with template as (select d.* from device d where d.uuid = $1)`;

const keepSql = `${template}
  select s.* into kept_state from template t join device_state s on s.device_id = t.id`;

const cloneSql = `${template}, made as (
    insert into device (account_id, connector_id, configuration, name)
    select t.account_id, t.connector_id, t.configuration, t.name from template t, generate_series(1, $2::int)
    returning id
  ), state as (
    insert into device_state (device_id, version, pu_id, st_id, state_at, answers_profiles, runtime)
    select m.id, s.version, s.pu_id, s.st_id, s.state_at, s.answers_profiles, s.runtime
      from made m, kept_state s
    returning device_id
  ), profiles as (
    insert into device_profile (device_id, profile_id, state, engine)
    select m.id, p.profile_id, p.state, p.engine
      from made m, template t join device_profile p on p.device_id = t.id
  ), senses as (
    insert into series (device_id, s_id)
    select m.id, s.s_id from made m, template t join series s on s.device_id = t.id
    returning id
  )
  insert into measurement (series_id, ts, val)
  select n.id, v.ts, v.val
    from senses n, template t join series s on s.device_id = t.id join measurement v on v.series_id = s.id`;

const armSql = `${template}, armed as (
    update device_state s
       set runtime = o.runtime, version = s.version + 1
      from template t join device d on d.account_id = t.account_id and d.id <> t.id
      cross join kept_state o
     where s.device_id = d.id
    returning s.device_id, d.account_id
  )
  insert into device_due (device_id, account_id, due_at)
  select device_id, account_id, now() + $2::int * interval '1 millisecond' from armed
  on conflict (device_id) do update set due_at = excluded.due_at, retry_at = null`;
