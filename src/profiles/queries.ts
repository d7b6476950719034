import type { Sense } from '../contract/configuration.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';

/** How long the account's purposes of these identifiers are, as JSON; what it does not have is left out. */
export async function listPurposeBytes(
  db: Sql,
  accountId: number,
  purposeIds: string[],
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; bytes: number }>(
    'select id, bytes from purpose where id = any($2::uuid[]) and account_id = $1',
    [accountId, purposeIds],
  );
  return new Map(rows.map(({ id, bytes }) => [id, bytes]));
}

/** The account's purposes of these identifiers; what it does not have is left out. */
export async function listPurposesById(
  db: Sql,
  accountId: number,
  purposeIds: string[],
): Promise<Map<string, Purpose>> {
  const { rows } = await db.query<{ id: string; body: Purpose }>(
    'select id, body from purpose where id = any($2::uuid[]) and account_id = $1',
    [accountId, purposeIds],
  );
  return new Map(rows.map(({ id, body }) => [id, body]));
}

/** More distinct senses than any real fleet has. */
const maxSenses = 10_000;

/** The senses of these names that the devices have, those that are alike once. */
export async function listDeviceSenses(
  db: Sql,
  deviceIds: number[],
  sIds: string[],
): Promise<Sense[]> {
  type Row = { sId: string } & Record<'min' | 'max' | 'minInterval', number | null>;
  const { rows } = await db.query<Row>(
    `
      select sense->>'sId' as "sId",
             (sense->>'min')::double precision as min, (sense->>'max')::double precision as max,
             (sense->>'minInterval')::double precision as "minInterval"
        from device
       cross join json_array_elements(configuration->'module') as module
       cross join json_array_elements(module->'senses') as sense
       where id = any($1::bigint[]) and sense->>'sId' = any($2::text[])
       group by 1, 2, 3, 4
       limit $3`,
    [deviceIds, sIds, maxSenses],
  );
  return rows.map(({ sId, min, max, minInterval }) => ({
    sId,
    ...(min !== null && { min }),
    ...(max !== null && { max }),
    ...(minInterval !== null && { minInterval }),
  }));
}

/** How many of these devices evaluate their current profile themselves. */
export async function countOwnEngines(db: Sql, deviceIds: number[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `
      select count(*)::integer as count
        from device_profile
       where device_id = any($1::bigint[]) and state = 'current' and engine = 'device'`,
    [deviceIds],
  );
  return rows[0]?.count ?? 0;
}
