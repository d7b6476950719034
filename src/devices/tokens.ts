import { type Actor, entryValues, insertEntryFrom } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';

/**
 * The version of a device's token; `previous`: the token before it is accepted too. `secretId`: of which secret the
 * token is that it used last; `newestSecretId`: the newest secret of the database, null where it knows none.
 */
export type Access = {
  deviceId: number;
  uuid: string;
  accountId: number;
  version: number;
  previous: boolean;
  secretId: string;
  newestSecretId: string | null;
};

type AccessRow = {
  id: number;
  uuid: string;
  account_id: number;
  token_version: number;
  previous_token_accepted: boolean;
  token_secret: string;
  newest_secret: string | null;
};

/** By uuid; devices that do not exist, or whose account is disabled, are left out. */
export async function listAccess(db: Sql, uuids: string[]): Promise<Map<string, Access>> {
  const { rows } = await db.query<AccessRow>({
    name: 'devices-access',
    text: `
      select d.id, d.uuid, d.account_id, d.token_version, d.previous_token_accepted, d.token_secret,
             (select left(value, 8) from secret_check order by place limit 1) as newest_secret
        from device d
        join account a on a.id = d.account_id
       where d.uuid = any($1::uuid[]) and a.disabled_at is null`,
    values: [uuids],
  });
  return new Map(
    rows.map((row) => [
      row.uuid,
      {
        deviceId: row.id,
        uuid: row.uuid,
        accountId: row.account_id,
        version: row.token_version,
        previous: row.previous_token_accepted,
        secretId: row.token_secret,
        newestSecretId: row.newest_secret,
      },
    ]),
  );
}

/** Says whether this call was the one that retired it. */
export async function retirePreviousToken(
  db: Sql,
  { deviceId, uuid, version }: Pick<Access, 'deviceId' | 'uuid' | 'version'>,
  ts: number,
): Promise<boolean> {
  const actor = { by: 'device', sessionId: null, address: null } as const;
  const details = { deviceAuthUuid: uuid };
  const { rowCount } = await db.query(
    `
      with retired as (
        update device
           set previous_token_accepted = false
         where id = $1 and token_version = $2 and previous_token_accepted
           and account_id is not null
        returning account_id
      ), audited as (${insertEntryFrom('retired', 3)})
      select from retired`,
    [deviceId, version, ...entryValues({ kind: 'device-token-retired', actor, ts, details })],
  );
  return rowCount === 1;
}

/** Devices showed a token of this secret; of one that is given twice the last counts. */
export async function noteTokenSecrets(
  db: Sql,
  shown: readonly { deviceId: number; secretId: string }[],
): Promise<void> {
  const last = new Map(shown.map(({ deviceId, secretId }) => [deviceId, secretId]));
  await db.query({
    name: 'devices-note-token-secrets',
    text: `
      update device d
         set token_secret = n.secret_id
        from unnest($1::bigint[], $2::text[]) as n (device_id, secret_id)
       where d.id = n.device_id and d.token_secret <> n.secret_id`,
    values: [[...last.keys()], [...last.values()]],
  });
}

export type TokenRotationInput = {
  accountId: number;
  uuid: string;
  /** The token before it works until the new one is first used. */
  keepPrevious: boolean;
  /** Of which secret the new token is. */
  secretId: string;
  actor: Actor;
  ts: number;
};

/** The new version; null when the account has no such device. */
export async function raiseTokenVersion(
  db: Sql,
  { accountId, uuid, keepPrevious, secretId, actor, ts }: TokenRotationInput,
): Promise<{ deviceId: number; version: number } | null> {
  const kind = keepPrevious ? 'device-token-rotated' : 'device-token-revoked';
  const details = { deviceAuthUuid: uuid };
  const { rows } = await db.query<{ id: number; token_version: number }>(
    `
      with raised as (
        update device
           set token_version = token_version + 1, previous_token_accepted = $3,
               token_secret = case when $3 then token_secret else $4 end
         where uuid = $2 and account_id = $1
        returning id, account_id, token_version
      ), audited as (${insertEntryFrom('raised', 5)})
      select id, token_version from raised`,
    [accountId, uuid, keepPrevious, secretId, ...entryValues({ kind, actor, ts, details })],
  );
  const [row] = rows;
  return row ? { deviceId: row.id, version: row.token_version } : null;
}
