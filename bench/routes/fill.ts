import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { call, type RegisteredDevice } from '../api.ts';
import { meterConfiguration, meterPurpose } from '../meter.ts';

export type BigAccount = {
  token: string;
  email: string;
  password: string;
  devices: RegisteredDevice[];
};

export type Sizes = { devices: number; alarms: number };

const password = 'a password of the bench';
const email = 'big@example.com';
const batchSize = 1_000;

/** The purpose of the other benches, except that it notifies people. */
const toldPurpose = JSON.parse(
  JSON.stringify(meterPurpose).replaceAll('"sendEvent":true', '"sendEvent":true,"sendPush":true'),
) as object;

/** The account that an earlier run has filled, or one that is filled now. */
export async function openBigAccount(
  baseUrl: string,
  client: Client,
  sizes: Sizes,
): Promise<BigAccount> {
  const { rows } = await client.query('select from account where email = $1', [email]);
  const path = rows.length > 0 ? '/v2/accounts/login' : '/v2/accounts';
  const answer = await call<{ accountAuthToken: string }>(baseUrl, 'POST', path, {
    body: { email, password },
  });
  const token = answer.accountAuthToken;
  if (rows.length === 0) await fill(baseUrl, client, token, sizes);
  const { devices } = await call<{ devices: RegisteredDevice[] }>(baseUrl, 'GET', '/v2/devices', {
    token,
  });
  return { token, email, password, devices };
}

async function fill(baseUrl: string, client: Client, token: string, sizes: Sizes): Promise<void> {
  const devices: RegisteredDevice[] = [];
  while (devices.length < sizes.devices) {
    const count = Math.min(batchSize, sizes.devices - devices.length);
    devices.push(...(await registerBatch(baseUrl, token, devices.length, count)));
  }
  for (let at = 0; at < devices.length; at += batchSize)
    await call(baseUrl, 'POST', '/v2/devices/profile', {
      token,
      body: {
        deviceAuthUuids: devices.slice(at, at + batchSize).map(({ uuid }) => uuid),
        purposeUuids: [],
        purposes: [toldPurpose],
      },
    });
  await openAndCloseAlarm(baseUrl, devices[0] as RegisteredDevice);
  const { rows } = await client.query<{ id: string }>('select id from account where email = $1', [
    email,
  ]);
  const alarmsThere = await client.query('select from alarm where closed_at is not null');
  if (alarmsThere.rows.length === 0) throw new Error('No alarm was opened and closed.');
  for (const [statement, values] of statementsOf(Number(rows[0]?.id), sizes))
    await client.query(statement, values);
  await client.query('vacuum analyze');
}

async function registerBatch(baseUrl: string, token: string, from: number, count: number) {
  const list = Array.from({ length: count }, (_, n) => ({
    ...meterConfiguration,
    device: { ...meterConfiguration.device, name: `Meter ${from + n}`, serial: `S-${from + n}` },
    labels: [`site ${(from + n) % 100}`, ...(from + n === 7 ? ['one of all'] : [])],
  }));
  const made = await call<{
    devices: { deviceAuthUuid: string; deviceAuthToken: string }[];
  }>(baseUrl, 'POST', '/v2/devices/batch', { token, body: { devices: list } });
  return made.devices.map((one) => ({ uuid: one.deviceAuthUuid, token: one.deviceAuthToken }));
}

/** Sends measurements over HTTP. The resulting row is the original of all copies. */
async function openAndCloseAlarm(baseUrl: string, { uuid, token }: RegisteredDevice) {
  const authorization = `Basic ${Buffer.from(`${uuid}:${token}`).toString('base64')}`;
  const ts = Date.now() - 10_000;
  const values = [30, 31, 32, 20, 19, 18];
  for (const [n, val] of values.entries()) {
    const answer = await fetch(`${baseUrl}/devices/${uuid}/up/measurements`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ sId: '0x01', val, ts: ts + n }),
    });
    if (!answer.ok) throw new Error(`A measurement was answered ${answer.status}.`);
  }
}

/** The columns that a copy of an alarm shares with the original. */
const shared = `account_id, p_id, pu_id, st_id, ev_id, purpose_name, state_name, event_name, tells, is_reported, is_global,
  last_firing_at, firings, event, actions, s_ids, moved_pu_id, moved_st_id, told`;
const real = `(select ${shared} from alarm where account_id = $1 and closed_at is not null order by id limit 1)`;

/** The devices of the account, numbered as `n`. */
const numbered = `numbered as (
  select id, uuid, row_number() over (order by id) - 1 as n from device where account_id = $1)`;

/**
 * Half of the closed alarms are spread over all devices, and half belong to the first four: a device whose alarm opens
 * once a second has 2.6 million after a month. Of everything else there is as much as quotas and retention allow, or as
 * a fleet of this size has.
 */
function statementsOf(accountId: number, { devices, alarms }: Sizes): [string, unknown[]][] {
  const copies = (count: number, of: number) =>
    `with ${numbered}, a as ${real}
     insert into alarm (device_id, device_uuid, since_at, closed_at, closed_by, ${shared})
     select d.id, d.uuid, now() - i * interval '15 s', now() - i * interval '15 s' + interval '5 s', 'cleared', a.*
       from generate_series(1, ${count}) i join numbered d on d.n = i % ${of} cross join a
      order by i desc`;
  const own = [accountId];
  return [
    [copies(alarms / 2, devices), own],
    [copies(alarms / 2, 4), own],
    [
      `insert into alarm (device_id, device_uuid, since_at, ${shared})
       select d.id, d.uuid, now() - interval '1 h', a.*
         from (select * from device where account_id = $1 order by id limit ${devices / 10}) d cross join ${real} a`,
      own,
    ],
    [
      `insert into presence (device_id, connector_id, connected, last_seen_at)
       select id, 1, id % 2 = 0, now() - (id % 100000) * interval '1 s' from device where account_id = $1
       on conflict (device_id) do update
          set connected = excluded.connected, last_seen_at = excluded.last_seen_at`,
      own,
    ],
    [
      `insert into notification
         (account_id, device_id, kind, recipient, title, body, engine, state, via, created_at, changed_at, type, alarm_id, announcement)
       select account_id, device_id, 'webhook', 'https://example.com/hook', 'too warm', 'It is too warm.', '{}', 'sent',
              'webhook', since_at, since_at, 'opened', id, 1
         from alarm where account_id = $1 order by id desc limit ${Math.min(alarms, 300_000)}`,
      own,
    ],
    [
      `insert into refused_login (uuid, reason, address, account_id, device_id, count, first_at, last_at, is_open)
       select uuid, 'wrong-token', '192.0.2.' || n, account_id, id, 3, now(), now() - n * interval '1 h', n = 1 and id % 10 = 0
         from device cross join generate_series(1, 16) n where account_id = $1`,
      own,
    ],
    [
      `with removed as (
         insert into removed_uuid (uuid, account_id, name)
         select gen_random_uuid(), $1, 'Meter' from generate_series(1, ${devices}) returning uuid)
       insert into refused_login (uuid, reason, address, account_id, count, first_at, last_at, is_open)
       select uuid, 'unknown-device', '192.0.2.' || n, $1, 3, now(), now() - n * interval '1 h', true
         from removed cross join generate_series(1, 4) n`,
      own,
    ],
    [
      `insert into account_event (account_id, ts, event)
       select $1, now() - n * interval '1 min', 'login' from generate_series(1, 500000) n`,
      own,
    ],
    [
      `insert into account_audit (account_id, ts, kind, actor, address, details)
       select $1, now() - n * interval '1 min', kind, 'session', '192.0.2.1', '{}'
         from unnest(array['login', 'login-refused', 'device-registered', 'device-removed', 'key-created', 'update']) kind
        cross join generate_series(1, 2000) n`,
      own,
    ],
    [
      `insert into rejection (device_id, message_id, item, rejected_at, topic, reason, message, path, payload)
       select id, gen_random_uuid(), n, now() - n * interval '1 s', 'measurements', 'invalid', 'is wrong', '/0', repeat('p', 900)
         from (select id from device where account_id = $1 order by id limit 100) d
        cross join generate_series(1, 1000) n`,
      own,
    ],
    [
      `insert into purpose (account_id, name, body, bytes)
       select $1, 'Purpose ' || n, p.body, p.bytes
         from generate_series(1, 990) n
        cross join (
          select $2::text::json as body, octet_length($2::text) as bytes) p`,
      [accountId, JSON.stringify(toldPurpose)],
    ],
    [
      `insert into device_mute (device_id, until_at, muted_at, muted_by)
       select id, now() + interval '1 y', now(), 'session' from device where account_id = $1 and id % 10 = 0`,
      own,
    ],
    [
      `insert into series (device_id, s_id)
       select id, s_id from device cross join unnest(array['0x01', '0x02', '0x03', '0x04', '0x05']) s_id
        where account_id = $1 on conflict do nothing`,
      own,
    ],
    [
      `insert into series (device_id, s_id)
       select d.id, '0x1' || lpad(to_hex(n), 3, '0')
         from (select id from device where account_id = $1 order by id limit 1) d
        cross join generate_series(1, 1000) n`,
      own,
    ],
    [
      `insert into measurement (series_id, ts, val)
       select s.id, date_trunc('minute', now()) - n * interval '1 h', 20 + n
         from series s join device d on d.id = s.device_id cross join generate_series(1, 24) n
        where d.account_id = $1 order by 2 on conflict do nothing`,
      own,
    ],
    [
      `insert into measurement (series_id, ts, val)
       select s.id, date_trunc('minute', now()) - n * interval '1 min' - interval '30 s', 20 + n % 10
         from series s
         join (select id from device where account_id = $1 order by id limit 20) d on d.id = s.device_id and s.s_id = '0x01'
        cross join generate_series(1, 60000) n order by 2`,
      own,
    ],
    ...['device', 'sense'].map((type): [string, unknown[]] => [
      `insert into event (device_id, type, ts, key, body)
       select d.id, $2, now() - n * interval '10 s', 'key ' || d.id || ' ' || n,
              (select event from alarm where account_id = $1 limit 1)
         from (select id from device where account_id = $1 order by id limit 10) d
        cross join generate_series(1, 50000) n order by 3`,
      [accountId, type],
    ]),
    [
      `insert into event_sense (device_id, s_id, ts, key, seq, body)
       select e.device_id, '0x01', e.ts, e.key, e.seq, e.body
         from event e join device d on d.id = e.device_id where d.account_id = $1 and e.type = 'sense' order by 3 on conflict do nothing`,
      own,
    ],
    [
      `insert into event_feed (account_id, recorded_at, seq, device_id, type, ts, body)
       select d.account_id, e.ts, e.seq, e.device_id, e.type, e.ts, e.body
         from event e join device d on d.id = e.device_id where d.account_id = $1 and e.ts > now() - interval '1 d'`,
      own,
    ],
    [
      `insert into alarm_change (account_id, recorded_at, device_id, device_uuid, ts, body)
       select account_id, since_at, device_id, device_uuid, since_at, event
         from alarm where account_id = $1 order by id desc limit 200000`,
      own,
    ],
    [
      `insert into contact (account_id, kind, address, address_normal, place, confirmed_at)
       select $1, 'email', 'p' || n || '@example.com', 'p' || n || '@example.com', n, now() from generate_series(1, 40) n`,
      own,
    ],
    [
      `insert into idempotency_key (account_id, owner, hash, request, begun_at, alive_at, made, answer, bytes)
       select $1, $2::uuid, sha256(n::text::bytea), ''::bytea, now(), now(), '', '', 100 from generate_series(1, 9990) n`,
      [accountId, randomUUID()],
    ],
    [
      `insert into job (account_id, action, actor, state, devices, total, done, created_at, ended_at)
       select $1, '{"action":"mute"}', '{"by":"session"}', 'done', array(select uuid from device where account_id = $1),
              ${devices}, ${devices}, now() - n * interval '1 min', now() from generate_series(1, 90) n`,
      own,
    ],
    [
      `insert into account_activity (account_id, day, process, measurements, events, events_left_out)
       select $1, current_date - n, gen_random_uuid(), 1000000, 1000, 0 from generate_series(0, 364) n`,
      own,
    ],
  ];
}
