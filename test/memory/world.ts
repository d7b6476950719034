import { deriveKeys } from '../../src/config/keys.ts';
import { deriveToken } from '../../src/devices/tokens.ts';
import { runningSecret, startRunningService } from '../journeys/running-service.ts';
import type { RunningService } from '../journeys/running-service.ts';
import { memoryOf } from '../support/processes.ts';

const mebibyte = 1_048_576;
const password = 'a password that nobody guesses';

/** The service as it is normally started, with a heap of this size. */
export function startSmall(heapMiB: number): Promise<RunningService> {
  return startRunningService([`--max-old-space-size=${heapMiB}`, '--max-semi-space-size=8']);
}

export type World = { service: RunningService; accountId: number; token: string };

/** An account that registered itself, and its token. */
export async function register(service: RunningService, email: string): Promise<World> {
  const post = async (path: string) => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ email, password });
    const response = await fetch(service.url + path, { method: 'POST', headers, body });
    return (await response.json()) as { accountAuthToken: string };
  };
  await post('/v2/accounts');
  const { accountAuthToken: token } = await post('/v2/accounts/login');
  const { rows } = await service.database.db.query<{ id: number }>(
    'select id from account where email = $1',
    [email],
  );
  return { service, accountId: rows[0]?.id ?? 0, token };
}

export type Device = { uuid: string; token: string };

/** Devices as they may have been stored before there were quotas, with names of this many bytes. */
export async function insertDevices(
  { service, accountId }: World,
  count: number,
  nameBytes = 10,
): Promise<Device[]> {
  const { rows } = await service.database.db.query<{ uuid: string }>(
    `with made as (
       insert into device (account_id, connector_id, name, configuration)
       select $1, 1, name, json_build_object('device', json_build_object('name', name), 'module',
                json_build_array(json_build_object('moduleId', 'm',
                  'senses', json_build_array(json_build_object('sId', 'a')))))
         from generate_series(1, $2) n, repeat('n', $3) name
       returning id, uuid
     ), stood as (
       insert into device_state (device_id) select id from made
     )
     select uuid from made`,
    [accountId, count, nameBytes],
  );
  const keys = deriveKeys(runningSecret).deviceTokens;
  return rows.map(({ uuid }) => ({ uuid, token: deriveToken(keys, uuid, 1) }));
}

/**
 * Gives each device a profile of its own of about this many bytes, as they may have been stored before there were
 * quotas.
 */
export async function installOwnProfiles(
  { service, accountId }: World,
  bytes: number,
): Promise<void> {
  const events = Array.from({ length: Math.round(bytes / 150) }, (_, evId) => ({
    evId,
    name: 'an event',
    causes: [{ sId: 'a', thresholds: { isGt: 1_000 + evId } }],
    actions: {},
  }));
  const states = [{ stId: 1, isGlobal: false, events }];
  const text = JSON.stringify([{ puId: 1, name: 'MARK', initStId: 1, states }]);
  const { rows } = await service.database.db.query<{ id: number }>(
    'select id from device where account_id = $1 order by id',
    [accountId],
  );
  const ids = rows.map(({ id }) => id);
  // A few per statement, because they take long to write.
  for (let from = 0; from < ids.length; from += 20) {
    await service.database.db.query(
      `with contents as (
         insert into profile_content (account_id, hash, bytes, purposes)
         select $1, n::text::bytea, octet_length($2), replace($2, 'MARK', n::text)::json
           from unnest($3::bigint[]) n
         returning id
       ), profiles as (
         insert into profile (account_id, content_id) select $1, id from contents returning id
       )
       insert into device_profile (device_id, profile_id)
       select d.id, p.id
         from unnest($3::bigint[]) with ordinality as d (id, n)
         join (select id, row_number() over () as n from profiles) p using (n)`,
      [accountId, text, ids.slice(from, from + 20)],
    );
  }
}

/** The most memory that the service has used so far, in MiB; null if the system does not report it. */
export function peakMiB({ process }: RunningService): number | null {
  if (globalThis.process.platform !== 'linux') return null;
  const bytes = memoryOf(process.child.pid ?? 0, 'VmHWM');
  return bytes === null ? null : Math.round(bytes / mebibyte);
}
