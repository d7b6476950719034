import { runOn } from '../../support/template.ts';
import type { Enemy } from './enemy.ts';

/** What an account has from before there were quotas. It is written past them. */
export type Before = {
  /** Replaces the content of all the account's profiles, before any device has run them. */
  replaceProfiles(purposes: object[]): Promise<void>;
  /** Adds devices with names of this many characters. */
  addDevices(count: number, nameLength: number): Promise<void>;
  /** Adds closed alarms of its devices, in turn. */
  addClosedAlarms(count: number): Promise<void>;
  raiseQuota(quota: string, value: number): Promise<void>;
  /** Adds measurements of a device's sense, one a second, up to now. */
  addMeasurements(deviceUuid: string, count: number): Promise<void>;
};

export function createBefore({ databaseUrl, account: { email } }: Enemy): Before {
  const run = async (text: string, values: unknown[]) => {
    await runOn(databaseUrl, (client) => client.query(text, [email, ...values]));
  };
  return {
    replaceProfiles: (purposes) =>
      run(
        `update profile_content
            set purposes = $2::json
          where account_id = (select id from account where email_normal = $1)`,
        [JSON.stringify(purposes)],
      ),
    addDevices: (count, nameLength) =>
      run(
        `with added as (
           insert into device (account_id, connector_id, configuration, name)
           select a.id, 1, json_build_object('device', json_build_object('name', n.name), 'module', '[]'::json), n.name
             from account a, (select repeat('n', $3::integer) as name) as n, generate_series(1, $2::integer)
            where a.email_normal = $1
           returning id
         )
         insert into device_state (device_id) select id from added`,
        [count, nameLength],
      ),
    addClosedAlarms: (count) =>
      run(
        `with numbered as (
           select d.*, row_number() over (order by d.id) - 1 as n
             from device d join account a on a.id = d.account_id and a.email_normal = $1
         )
         insert into alarm
           (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global, since_at,
            last_firing_at, event, actions, s_ids, closed_at, closed_by)
         select d.account_id, d.id, d.uuid, '', 1, 1, 1, 'alarm', false, false, now() - i * interval '1 min',
                now() - i * interval '1 min', '{}', '{}', '{}', now() - i * interval '30 s', 'cleared'
           from generate_series(1, $2::integer) i
           join numbered d on d.n = i % (select count(*) from numbered)`,
        [count],
      ),
    raiseQuota: (quota, value) =>
      run(
        `insert into account_quota (account_id, quota, value)
         select id, $2, $3 from account where email_normal = $1`,
        [quota, value],
      ),
    addMeasurements: (deviceUuid, count) =>
      run(
        `insert into measurement (series_id, ts, val)
         select s.id, date_trunc('second', now()) - n * interval '1 second', n
           from account a
           join device d on d.account_id = a.id and d.uuid = $2
           join series s on s.device_id = d.id,
                generate_series(1, $3::integer) as n
          where a.email_normal = $1`,
        [deviceUuid, count],
      ),
  };
}
