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

/** Newest first: those that were in force at a time from `start` to `end`; null if the account has no such device. */
async function listSpans(
  db: Sql,
  accountId: number,
  uuid: string,
  { start, end, cursor, limit }: Range,
): Promise<Row[] | null> {
  const { rows } = await db.query<Row | { [K in keyof Row]: null }>(
    `
      select p.id, s.from_at, s.until_at, p.created_at, p.made_by, p.made_session as session_id, p.made_reason as reason,
             (select json_agg(json_build_object('puId', one -> 'puId', 'name', one -> 'name'))
                from json_array_elements(coalesce(c.purposes, f.purposes)) as one) as purposes
        from device d
        left join lateral (
          select * from device_profile_span
           where device_id = d.id
             and ($4::bigint is null or from_at <= ms_to_timestamp($4))
             and (until_at is null or until_at >= ms_to_timestamp($3))
             and ($5::bigint is null or (from_at, profile_id) < (ms_to_timestamp($5), $6::uuid))
           order by from_at desc, profile_id desc
           limit $7) as s on true
        left join profile p on p.id = s.profile_id
        left join profile_content c on c.id = p.content_id
        left join former_profile_content f on f.id = p.former_content_id
       where d.account_id = $1 and d.uuid = $2
       order by s.from_at desc, s.profile_id desc`,
    [accountId, uuid, start, end ?? null, cursor?.fromTs ?? null, cursor?.pId ?? null, limit],
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is Row => row.id !== null);
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
  return defineRoute({
    name: 'listDeviceProfiles',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/profiles',
    summary: 'List the profiles that were in force on a device',
    description:
      'Newest first: those that were in force at a time from `start` to `end`. The newest 1,000 are kept, for as long ' +
      'as events, and the purposes of 16 MiB that no device needs any more. A Link header names the next page.',
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
      const range = { start, end, cursor, limit: limit + 1 };
      const rows = await listSpans(db, account.accountId, params.deviceAuthUuid, range);
      if (rows === null) throw new DomainError('not-found', 'There is no such device.');
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      if (rows.length > limit && last) linkNext(request, { fromTs: last.from_at, pId: last.id });
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
