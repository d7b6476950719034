import { z } from 'zod';
import type { Sense } from '../contract/configuration.ts';
import {
  awaitingAnswer,
  neededStates,
  type ProfileHappening,
  type ProfileState,
  profileStates,
  transitionOf,
} from '../contract/profile.ts';
import { Purpose } from '../contract/purpose.ts';
import { Warned } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import { type Sql, textList } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import {
  cursorQuery,
  deviceUuid,
  exampleIds,
  limitQuery,
  timestamp,
  uuidParam,
} from '../http/schema.ts';
import { lockUsage } from '../quotas/quotas.ts';

/** The lengths of these purposes as JSON, in bytes; purposes that the account does not have are missing. */
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

/** These purposes; those that the account does not have are missing. */
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

/** The senses with these names that the devices have, without duplicates. */
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

/** As SQL: the job `j` can be undone, or is under way (`jobs.ts`). */
const isUndoable = `
  (cardinality(j.devices) > 0 or (j.total = 0 and j.ended_at > clock_timestamp() - interval '1 hour'))`;

/**
 * Deletes the contents of the account's profiles that no device needs any more, that no job installs or may bring back,
 * and that are no label's limits; its usage is locked (`lockUsage`).
 */
export async function removeUnused(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      with used as (
        select p.content_id
          from device d
          join device_profile w on w.device_id = d.id and w.state in ${awaiting}
          join profile p on p.id = w.profile_id
         where d.account_id = $1
         union
        select p.content_id
          from device d
          join device_profile c on c.device_id = d.id and c.state = 'current'
          join profile p on p.id = c.profile_id
         where d.account_id = $1
         union
        select unnest(array[p.content_id, f.content_id])
          from job j
          join profile p on p.change_id = any(array[
            (j.action #>> '{change,changeId}')::uuid,
            case when j.state = 'acting' then (j.action #>> '{change,back}')::uuid end])
          left join device_profile w on w.profile_id = p.id
          left join profile f on f.id = w.former_id
         where j.account_id = $1 and ${isUndoable}
         union
        select p.content_id
          from job j
         cross join json_array_elements(j.action #> '{change,limits,from}') own
          join profile p on p.id = (own ->> 'pId')::uuid
         where j.account_id = $1 and ${isUndoable}
         union
        select p.content_id
          from account a
         cross join json_array_elements(a.label_limits) own
          join profile p on p.id = (own ->> 'pId')::uuid
         where a.id = $1
      ), gone as (
        delete from profile_content
         where account_id = $1
           and not exists (select from used where content_id = profile_content.id)
        returning bytes
      )
      update account_usage
         set profiles = greatest(0, profiles - (select count(*) from gone)),
             profile_bytes = greatest(0, profile_bytes - (select coalesce(sum(bytes), 0) from gone))
       where account_id = $1`,
    [accountId],
  );
}

/** The same for all accounts, one after another. What fails for one of them is thrown after the others. */
export async function removeUnusedProfiles(db: Database, signal: AbortSignal): Promise<void> {
  const errors: unknown[] = [];
  for (const accountId of await listOwners(db)) {
    if (signal.aborted) return;
    await db
      .transaction(async (tx) => {
        await lockUsage(tx, accountId);
        await removeUnused(tx, accountId);
      })
      .catch(ignoreGone)
      .catch((error: unknown) => void errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}

/** The account was deleted meanwhile, with its profiles. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof DomainError && error.code === 'unauthenticated')) throw error;
}

/** Accounts with contents that no device needs, as far as a query without a lock can tell. */
async function listOwners(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ account_id: number }>(
    `
      select distinct c.account_id
        from profile_content c
       where not exists (
         select from profile p
           join device_profile d on d.profile_id = p.id
          where p.content_id = c.id and d.state in ${needed})`,
  );
  return rows.map(({ account_id }) => account_id);
}

/** A transition as SQL: the list of states that it leads from, and the state that it leads to. */
export function transition(happening: ProfileHappening): { from: string; to: string } {
  const { from, to } = transitionOf(happening);
  return { from: textList(from), to: `'${to}'` };
}

/** As SQL: the states of a profile that waits for an answer, and of one that the device needs. */
export const awaiting = textList(awaitingAnswer);
export const needed = textList(neededStates);

type RollOutRow = {
  uuid: string;
  state: ProfileState;
  answer_text: string | null;
  changed_at: number;
};

/** The state of a profile on each of its devices; null if the account has no such profile. */
export async function findRollOut(
  db: Sql,
  accountId: number,
  profileId: string,
  labels: readonly string[] | null = null,
): Promise<RollOutRow[] | null> {
  const { rows } = await db.query<RollOutRow | { [K in keyof RollOutRow]: null }>(
    `
      select d.uuid, dp.state, dp.answer_text, dp.changed_at
        from profile p
        left join device_profile dp on dp.profile_id = p.id
        left join device d on d.id = dp.device_id and d.account_id = p.account_id
                          and ($3::text[] is null or d.labels && $3)
       where p.id = $2 and p.account_id = $1
       order by d.id`,
    [accountId, profileId, labels],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is RollOutRow => row.uuid !== null);
}

export type ListedProfile = {
  pId: string;
  purposes: { puId: number; name?: string }[];
  devices: number;
  pending: number;
  refused: number;
  firstInstalledTs: number;
  lastInstalledTs: number;
};

/** Bytes of purposes that one page reads. */
const mostPageBytes = 8 * 1024 * 1024;

/**
 * The purposes that devices run, wait for or have refused, each content once, newest first, after the content `after`;
 * as many as fit into a page. `labels`: only devices with one of these; null: all.
 */
export async function listProfiles(
  sql: Sql,
  accountId: number,
  {
    labels,
    after,
    limit,
  }: { labels: readonly string[] | null; after: number | null; limit: number },
): Promise<{ profiles: ListedProfile[]; next: number | null }> {
  const { rows } = await sql.query<
    ListedProfile & { contentId: number; soFar: number; found: number }
  >(
    `
      with listed as materialized (
        select c.id, c.bytes, counted.*
          from profile_content c
         cross join lateral (
           select (count(*) filter (where w.state = 'current'))::integer as devices,
                  (count(*) filter (where w.state in ${awaiting} and not exists (
                     select from device_profile has
                       join profile i on i.id = has.profile_id
                      where has.device_id = w.device_id and has.state = 'current'
                        and i.content_id = c.id)))::integer as pending,
                  (count(*) filter (where w.state = 'rejected' and not exists (
                     select from device_profile l
                       join profile i on i.id = l.profile_id
                      where l.device_id = w.device_id and i.created_at > p.created_at)))::integer as refused
             from profile p
             join device_profile w on w.profile_id = p.id
             join device d on d.id = w.device_id
            where p.content_id = c.id and ($2::text[] is null or d.labels && $2)) counted
         where c.account_id = $1 and ($3::bigint is null or c.id < $3)
           and counted.devices + counted.pending + counted.refused > 0
         order by c.id desc
         limit $4
      ), page as (
        select *, sum(bytes) over (order by id desc) - bytes as before, count(*) over () as found from listed
      )
      select page.id as "contentId", page.found, page.devices, page.pending, page.refused, installed.*,
             (select json_agg(json_build_object('puId', one -> 'puId', 'name', one -> 'name'))
                from json_array_elements(c.purposes) one) as purposes
        from page
        join profile_content c using (id)
       cross join lateral (
         select (array_agg(p.id order by p.created_at desc))[1] as "pId",
                min(p.created_at) as "firstInstalledTs", max(p.created_at) as "lastInstalledTs"
           from profile p
          where p.content_id = page.id) installed
       where page.before < ${mostPageBytes}
       order by page.id desc`,
    [accountId, labels, after, limit + 1],
  );
  const page = rows.slice(0, limit);
  const isMore = (rows[0]?.found ?? 0) > page.length;
  const profiles = page.map(({ contentId: _id, found: _found, purposes, ...profile }) => ({
    ...profile,
    purposes: (purposes ?? []).map(({ puId, name }) => ({ puId, ...(name ? { name } : {}) })),
  }));
  return { profiles, next: isMore ? (page.at(-1)?.contentId ?? null) : null };
}

/** As SQL: the profile `p` is or was on a device with one of the labels in this parameter; null: any profile. */
const isInReach = (labels: string) => `(
  ${labels}::text[] is null or exists (
    select from profile i
      join device_profile w on w.profile_id = i.id
      join device d on d.id = w.device_id
     where i.content_id = p.content_id and d.labels && ${labels}
     union all
    select from device_profile_span s
      join device d on d.id = s.device_id
     where s.profile_id = p.id and d.labels && ${labels}))`;

/** The purposes of a profile, as JSON; null if the account has no such profile in reach, or no device needs it. */
export async function findContentOf(
  sql: Sql,
  accountId: number,
  pId: string,
  labels: readonly string[] | null,
): Promise<string | null> {
  const { rows } = await sql.query<{ purposes: string }>(
    `select c.purposes::text as purposes
       from profile p
       join profile_content c on c.id = p.content_id
      where p.id = $2 and p.account_id = $1 and ${isInReach('$3')}`,
    [accountId, pId, labels],
  );
  return rows[0]?.purposes ?? null;
}

/**
 * The purposes of a profile, as JSON; null if the account has no such profile, if no device in reach has or had it, or
 * if they are no longer kept.
 */
export async function findPurposesOf(
  sql: Sql,
  accountId: number,
  pId: string,
  labels: readonly string[] | null,
): Promise<string | null> {
  const { rows } = await sql.query<{ purposes: string }>(
    `
      select coalesce(c.purposes, f.purposes)::text as purposes
        from profile p
        left join profile_content c on c.id = p.content_id
        left join former_profile_content f on f.id = p.former_content_id
       where p.id = $2 and p.account_id = $1 and num_nonnulls(c.id, f.id) > 0
         and ${isInReach('$3')}`,
    [accountId, pId, labels],
  );
  return rows[0]?.purposes ?? null;
}

export const ProfileParams = z.object({ pId: uuidParam.meta({ example: exampleIds.profile }) });

/** Specification section 4.3: the body of Install device profile. */
export const ProfileInstall = z
  .object({
    deviceAuthUuids: z.array(z.string()).min(1, 'name at least one device').max(20_000),
    purposeUuids: z.array(z.string()).max(256).default([]),
    purposes: z.array(Purpose).max(256).default([]),
  })
  .refine((body) => body.purposeUuids.length + body.purposes.length > 0, {
    message: 'give at least one purpose, here or in purposes',
    path: ['purposeUuids'],
  });
export type ProfileInstall = z.infer<typeof ProfileInstall>;

export const InstalledProfile = z.object({
  timestamp,
  state: z.literal('pending'),
  pId: z.guid().meta({ example: exampleIds.profile }),
  ...Warned,
});

export const RollOut = z.object({
  pId: z.guid(),
  devices: z.array(
    z
      .object({
        deviceAuthUuid: deviceUuid,
        state: z.enum(profileStates),
        text: z
          .string()
          .optional()
          .meta({ description: "The device's own explanation, if it gave one." }),
        ts: timestamp.meta({ description: 'When the profile entered this state.' }),
      })
      .meta({ id: 'RollOutDevice' }),
  ),
  timestamp,
});

/** A page of GET /v2/profiles begins after this content. */
export const ProfilesQuery = z.object({
  limit: limitQuery(100, 50),
  cursor: cursorQuery(z.int().min(1)),
});

export const ProfileList = z.object({
  profiles: z.array(
    z
      .object({
        pId: z.guid().meta({ description: 'The newest profile with these purposes.' }),
        purposes: z.array(
          z.object({ puId: z.int(), name: z.string().optional() }).meta({ id: 'PurposeOfProfile' }),
        ),
        devices: z.int().meta({ description: 'How many devices run it.' }),
        pending: z.int().meta({ description: 'How many have not answered yet.' }),
        refused: z.int().meta({
          description: 'How many have refused it, and have been given no other one since.',
        }),
        firstInstalledTs: timestamp,
        lastInstalledTs: timestamp,
      })
      .meta({ id: 'ListedProfile' }),
  ),
  timestamp,
});

export const PurposesOfProfile = z.object({
  pId: z.guid(),
  purposes: z.array(Purpose),
  timestamp,
});
