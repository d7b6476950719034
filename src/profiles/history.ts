import { z } from 'zod';
import type { Actor } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { deleteInBatches, type Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorQuery,
  cursorTs,
  DeviceParams,
  limitQuery,
  linkNext,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import { createFairRunner } from '../quotas/quotas.ts';
import { MadeBy, sayMaker, type WrittenBy, writtenValues } from '../versions/versions.ts';

/*
 * Which profile was in force on a device, from when to when, so that "which limits were in force on 3 May" has an
 * answer. Triggers keep the spans, and the contents that no device needs any more (`device_profile_span`,
 * `former_profile_content`).
 */

/** Notes who installed a profile and why, in the transaction that makes it. */
export async function noteInstaller(tx: Sql, pId: string, by: WrittenBy): Promise<void> {
  const [, ...values] = writtenValues(by);
  await tx.query(
    'update profile set made_by = $2, made_session = $3, made_reason = $4 where id = $1',
    [pId, ...values],
  );
}

type Row = {
  id: string;
  from_at: number;
  until_at: number | null;
  created_at: number;
  made_by: Actor['by'] | null;
  session_id: string | null;
  reason: string | null;
  purposes: { puId: number; name?: string }[] | null;
};

const Cursor = z.object({ fromTs: cursorTs, pId: z.guid() });

type Range = {
  start: number;
  end: number | undefined;
  cursor: z.output<typeof Cursor> | undefined;
  limit: number;
};

/** Bytes of purposes that one page reads. */
const mostPageBytes = 1024 * 1024;

/**
 * Newest first: those that were in force at a time from `start` to `end`, as many as fit into a page; null if the
 * account has no such device. `isMore`: there are others.
 */
async function listSpans(
  db: Sql,
  accountId: number,
  uuid: string,
  { start, end, cursor, limit }: Range,
): Promise<{ page: Row[]; isMore: boolean } | null> {
  type Found = Row & { found: number };
  const { rows } = await db.query<Found | { [K in keyof Found]: null }>(
    `
      select s.id, s.from_at, s.until_at, s.created_at, s.made_by, s.made_session as session_id,
             s.made_reason as reason, s.found,
             (select json_agg(json_build_object('puId', one -> 'puId', 'name', one -> 'name'))
                from json_array_elements(coalesce(c.purposes, f.purposes)) as one) as purposes
        from device d
        left join lateral (
          select *, sum(bytes) over newest - bytes as before, count(*) over () as found
            from (
              select p.*, own.from_at, own.until_at, coalesce(c.bytes, f.bytes, 0) as bytes
                from device_profile_span own
                join profile p on p.id = own.profile_id
                left join profile_content c on c.id = p.content_id
                left join former_profile_content f on f.id = p.former_content_id
               where own.device_id = d.id
                 and ($4::bigint is null or own.from_at <= ms_to_timestamp($4))
                 and (own.until_at is null or own.until_at >= ms_to_timestamp($3))
                 and ($5::bigint is null or (own.from_at, own.profile_id) < (ms_to_timestamp($5), $6::uuid))
               order by own.from_at desc, own.profile_id desc
               limit $7) as each
          window newest as (order by from_at desc, id desc)) as s on s.before < ${mostPageBytes}
        left join profile_content c on c.id = s.content_id
        left join former_profile_content f on f.id = s.former_content_id
       where d.account_id = $1 and d.uuid = $2
       order by s.from_at desc, s.id desc`,
    [accountId, uuid, start, end ?? null, cursor?.fromTs ?? null, cursor?.pId ?? null, limit + 1],
  );
  if (rows.length === 0) return null;
  const page = rows.filter((row): row is Found => row.id !== null).slice(0, limit);
  return { page, isMore: (rows[0]?.found ?? 0) > page.length };
}

/** Deletes what ended before `beforeTs` (ms), some thousand rows per transaction. */
export async function forgetSpans(
  db: Database,
  beforeTs: number,
  signal?: AbortSignal,
): Promise<void> {
  for (const [table, column] of [
    ['device_profile_span', 'until_at'],
    ['former_profile_content', 'ended_at'],
  ]) {
    const deleteSome = (limit: number) =>
      db.query(
        `delete from ${table}
          where ctid = any(array(
            select ctid from ${table} where ${column} < ms_to_timestamp($1) limit $2
               for update skip locked))`,
        [beforeTs, limit],
      );
    await deleteInBatches(deleteSome, { signal });
  }
}

const SpanList = z.object({
  profiles: z.array(
    z
      .object({
        pId: z.guid(),
        fromTs: timestamp.meta({ description: 'Since when it was in force on the device.' }),
        untilTs: timestamp
          .nullable()
          .meta({ description: 'Until when; null: it is in force now.' }),
        installedTs: timestamp.meta({ description: 'When somebody installed it.' }),
        ...MadeBy.shape,
        purposes: z
          .array(z.object({ puId: z.int(), name: z.string().optional() }))
          .nullable()
          .meta({
            description: 'GET /v2/profiles/{pId} has all of them. null: they are no longer kept.',
          }),
      })
      .meta({ id: 'ProfileSpan' }),
  ),
  timestamp,
});

const SpansQuery = z.object({
  start: timestampQuery.default(0),
  end: timestampQuery.optional(),
  limit: limitQuery(100),
  cursor: cursorQuery(Cursor),
});

/** The profiles of a device over time. */
export function historyRoute({ db }: { db: Sql }): Route {
  const runFairly = createFairRunner(1);
  return defineRoute({
    name: 'listDeviceProfiles',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/profiles',
    summary: 'List the profiles that were in force on a device',
    description:
      'Newest first: those that were in force at a time from `start` to `end`. The newest 1,000 are kept, for as long ' +
      'as events, and the purposes of 16 MiB that no device needs any more. A page has at most 1 MiB of purposes, but at least one ' +
      'profile. A Link header names the next page.',
    tag: 'Profiles',
    auth: 'account',
    params: DeviceParams,
    query: SpansQuery,
    response: SpanList,
    errors: [404],
    responseHeaders: { Link: 'The next page: `<…>; rel="next"`. Absent on the last page.' },
    answerBytes: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const { limit, cursor, start, end } = query;
      const range = { start, end, cursor, limit };
      const found = await runFairly(account.accountId, () =>
        listSpans(db, account.accountId, params.deviceAuthUuid, range),
      );
      if (found === null) throw new DomainError('not-found', 'There is no such device.');
      const { page, isMore } = found;
      const last = page.at(-1);
      if (isMore && last) linkNext(request, { fromTs: last.from_at, pId: last.id });
      return { profiles: page.map(toSpan), timestamp: request.now() };
    },
  });
}

export type ProfileSpan = z.infer<typeof SpanList>['profiles'][number];

const toSpan = ({ purposes, ...row }: Row) => ({
  pId: row.id,
  fromTs: row.from_at,
  untilTs: row.until_at,
  installedTs: row.created_at,
  ...sayMaker(row),
  purposes: purposes?.map(({ puId, name }) => ({ puId, ...(name ? { name } : {}) })) ?? null,
});
