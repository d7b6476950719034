import type { Sql } from '../db/sql.ts';

/** Whose rows are of no process that runs: what is over, and what was imported. */
const noProcess = `'00000000-0000-0000-0000-000000000000'`;

/** What an account's devices sent and gave rise to. `leftOut`: events beyond the day's quota. */
export type Counts = { measurements: number; events: number; leftOut: number };

/** Adds to what this process has counted of a day (UTC, `2026-11-22`). Accounts that are gone are left out. */
export async function addCounts(
  sql: Sql,
  process: string,
  day: string,
  counts: ReadonlyMap<number, Counts>,
): Promise<void> {
  const all = [...counts.values()];
  await sql.query(
    `
      insert into account_activity as a
        (account_id, process, day, measurements, events, events_left_out)
      select account.id, $1::uuid, $2::date, c.measurements, c.events, c.left_out
        from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
          as c (account_id, measurements, events, left_out)
        join account on account.id = c.account_id
      on conflict (account_id, day, process) do update
         set measurements = a.measurements + excluded.measurements,
             events = a.events + excluded.events,
             events_left_out = a.events_left_out + excluded.events_left_out`,
    [
      process,
      day,
      [...counts.keys()],
      all.map(({ measurements }) => measurements),
      all.map(({ events }) => events),
      all.map(({ leftOut }) => leftOut),
    ],
  );
}

/**
 * Adds measurements of an account that were imported, by their days (UTC, counted from 1970) and not by the day of
 * the import: as long as they are kept, they count for `storedBytes`.
 */
export async function addImported(
  sql: Sql,
  accountId: number,
  days: ReadonlyMap<number, number>,
): Promise<void> {
  await sql.query({
    name: 'add-imported',
    // In order, so that two that add to the same days wait for each other in one direction.
    text: `
      insert into account_activity as a
        (account_id, process, day, measurements, events, events_left_out)
      select account.id, ${noProcess}::uuid, date '1970-01-01' + d.day, d.measurements, 0, 0
        from unnest($2::integer[], $3::bigint[]) as d (day, measurements)
        join account on account.id = $1
       order by d.day
      on conflict (account_id, day, process) do update
         set measurements = a.measurements + excluded.measurements`,
    values: [accountId, [...days.keys()], [...days.values()]],
  });
}

/** Events recorded on a day by all processes, by account; of these accounts, or of all. */
export async function listRecorded(
  sql: Sql,
  day: string,
  accountIds: number[] | null,
): Promise<Map<number, number>> {
  const { rows } = await sql.query<{ account_id: number; events: number }>(
    `
      select account_id, sum(events)::bigint as events
        from account_activity
       where day = $1::date and ($2::bigint[] is null or account_id = any($2))
       group by account_id`,
    [day, accountIds],
  );
  return new Map(rows.map(({ account_id, events }) => [account_id, events]));
}

// About what one takes with its indexes on plain PostgreSQL: a measurement 108 bytes; an event 557, 536 for
// each sense, and for a day 431 in the feed. Compressed ones take less.
const measurementBytes = 100;
const eventBytes = 1_400;
/** A text that is kept for a display, beside its own bytes. */
const displayBytes = 100;

export type CountRetention = { eventsDays: number; measurementsDays: number };

/** Today's events, recorded or not, and about how much an account has stored; all processes together. */
export async function findActivity(
  sql: Sql,
  accountId: number,
  { eventsDays, measurementsDays }: CountRetention,
): Promise<{ eventsPerDay: number; storedBytes: number }> {
  const { rows } = await sql.query<{ eventsPerDay: number; storedBytes: number }>(
    `
      select coalesce(sum(events + events_left_out) filter (where age = 0), 0)::bigint
               as "eventsPerDay",
             coalesce(sum(events) filter (where age <= $2), 0)::bigint * ${eventBytes}
               + coalesce(sum(measurements) filter (where age <= $3), 0)::bigint * ${measurementBytes}
               + (select coalesce(max(purpose_bytes + profile_bytes), 0)
                    from account_usage where account_id = $1)
               + (select coalesce(sum(octet_length(k.text) + ${displayBytes}), 0)
                    from device d join kept_display k on k.device_id = d.id
                   where d.account_id = $1)
               as "storedBytes"
        from (select *, (now() at time zone 'UTC')::date - day as age
                from account_activity where account_id = $1) as a`,
    [accountId, eventsDays, measurementsDays],
  );
  return rows[0] ?? { eventsPerDay: 0, storedBytes: 0 };
}

/** About how much each account has stored, where it is anything. */
export async function listStoredBytes(
  sql: Sql,
  { eventsDays, measurementsDays }: CountRetention,
): Promise<Map<number, number>> {
  const { rows } = await sql.query<{ account_id: number; bytes: number }>(
    `
      select account_id, sum(bytes)::bigint as bytes
        from (select account_id, purpose_bytes + profile_bytes as bytes from account_usage
              union all
              select d.account_id, octet_length(k.text) + ${displayBytes}
                from kept_display k join device d on d.id = k.device_id
              union all
              select account_id,
                     case when age <= $1 then events * ${eventBytes} else 0 end
                     + case when age <= $2 then measurements * ${measurementBytes} else 0 end
                from (select *, (now() at time zone 'UTC')::date - day as age
                        from account_activity) as a) as stored
       group by account_id
      having sum(bytes) > 0`,
    [eventsDays, measurementsDays],
  );
  return new Map(rows.map(({ account_id, bytes }) => [account_id, bytes]));
}

/** More days than that are all of them: PostgreSQL counts no further back. */
const longestDays = 365_000;

/** Rows of days that are over become one an account and day, and go when nothing of them is kept. */
export async function compactActivity(
  sql: Sql,
  { eventsDays, measurementsDays }: CountRetention,
  nowTs: number,
): Promise<void> {
  const today = `(ms_to_timestamp($1) at time zone 'UTC')::date`;
  await sql.query(
    `
      with over as (
        delete from account_activity
         where day < ${today} - 1 and process <> ${noProcess}
        returning *
      )
      insert into account_activity as a
        (account_id, process, day, measurements, events, events_left_out)
      select account_id, ${noProcess}::uuid, day, sum(measurements), sum(events), sum(events_left_out)
        from over
       group by account_id, day
      on conflict (account_id, day, process) do update
         set measurements = a.measurements + excluded.measurements,
             events = a.events + excluded.events,
             events_left_out = a.events_left_out + excluded.events_left_out`,
    [nowTs],
  );
  await sql.query(`delete from account_activity where day < ${today} - $2::integer`, [
    nowTs,
    Math.min(Math.max(eventsDays, measurementsDays), longestDays),
  ]);
}
