import type { Sql } from '../db/sql.ts';
import type { AccountEvent } from './schema.ts';

/** Where a page ends: the next begins right behind it. */
type AccountEventCursor = { ts: number; id: number };

export type EventsQuery = {
  limit: number;
  /** Inclusive, ms. */
  start?: number | undefined;
  end?: number | undefined;
  cursor?: AccountEventCursor | undefined;
};

export type EventsPage = { events: AccountEvent[]; next: AccountEventCursor | null };

/** Newest first; within a millisecond by id, so that pages neither skip nor repeat events. */
export async function listAccountEvents(
  sql: Sql,
  { accountId, accountUuid }: { accountId: number; accountUuid: string },
  { limit, start, end, cursor }: EventsQuery,
): Promise<EventsPage> {
  const { rows } = await sql.query<AccountEventCursor & Pick<AccountEvent, 'event'>>(
    `
      select id, ts, event
      from account_event
      where account_id = $1
        and ts >= ms_to_timestamp($2)
        and ($3::bigint is null or ts <= ms_to_timestamp($3))
        and ($4::bigint is null or (ts, id) < (ms_to_timestamp($4), $5::bigint))
      order by ts desc, id desc
      limit $6
    `,
    [accountId, start ?? 0, end ?? null, cursor?.ts ?? null, cursor?.id ?? null, limit + 1],
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    events: page.map(({ ts, event }) => ({
      timestamp: ts,
      type: 'account',
      event,
      accountAuthUuid: accountUuid,
    })),
    next: rows.length > limit && last ? { ts: last.ts, id: last.id } : null,
  };
}
