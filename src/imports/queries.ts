import type { Sense } from '../contract/configuration.ts';
import type { Sql } from '../db/sql.ts';
import { ingestLock } from '../db/locks.ts';

/** Whose devices, and to which of them a key is confined: those with one of these labels; null: all. */
export type Owner = { accountId: number; within: readonly string[] | null };

export type OwnDevice = { deviceId: number; uuid: string };

/** Those of these devices that are the account's, and within the key's reach. */
export async function listOwnDevices(
  sql: Sql,
  { accountId, within }: Owner,
  uuids: string[],
): Promise<OwnDevice[]> {
  const { rows } = await sql.query<OwnDevice>({
    name: 'import-devices',
    text: `
      select id as "deviceId", uuid
        from device
       where account_id = $1 and uuid = any($2::uuid[])
         and ($3::text[] is null or labels && $3)
         and not exists (select from account where id = $1 and removed_at is not null)`,
    values: [accountId, uuids, within],
  });
  return rows;
}

/** A sense of a device as its configuration has it. */
export type FoundSense = Sense & { deviceId: number };

/** Those of these senses that the configurations of these devices name. */
export async function listSenses(
  sql: Sql,
  deviceIds: number[],
  sIds: string[],
): Promise<FoundSense[]> {
  const { rows } = await sql.query<{ deviceId: number; sense: Sense }>({
    name: 'import-senses',
    text: `
      select device.id as "deviceId", sense
        from device
       cross join json_array_elements(configuration -> 'module') module
       cross join json_array_elements(module -> 'senses') sense
       where device.id = any($1::bigint[]) and sense ->> 'sId' = any($2::text[])`,
    values: [deviceIds, sIds],
  });
  return rows.map(({ deviceId, sense }) => ({ deviceId, ...sense }));
}

/**
 * Begins what stores a batch: no device goes before it ends (`ingestLock`), and it waits for no lock longer than
 * this. That is less than a server takes to look for a deadlock (1 s): where an import and ingest wait for
 * each other, it is the import that gives way.
 */
export async function beginBatch(tx: Sql, longestWaitMs: number): Promise<void> {
  await tx.query(
    `select set_config('lock_timeout', $1, true), pg_advisory_xact_lock_shared(${ingestLock})`,
    [`${longestWaitMs}ms`],
  );
}
