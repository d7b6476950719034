import type { AccountThrottle, DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import type { LimitsOf } from './quotas.ts';
import { type EventRate, eventsBurst } from './rates.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

/** Counts the activity of accounts' devices in this process, and knows the counts of the others. */
export type Activity = {
  count(accountId: number, counts: Counts): void;
  /** How many more events of the account may be recorded today (UTC). */
  eventsLeft(accountId: number): number;
  /** Writes the counts; called every few seconds, and once more at the end. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

type ActivityOptions = {
  db: Sql;
  limitsOf: LimitsOf;
  clock: Clock;
  /** Identifies this run of the process, whose counts have rows of their own. */
  runUuid: string;
  intervalMs?: number;
  onError: (error: unknown) => void;
};

/**
 * Each process has its own row for each account and day: with a single shared row, written with every message, all
 * processes would wait for each other. So the counts of other processes arrive some seconds late, and a process that is
 * killed loses those of its last seconds.
 */
export async function startActivity(options: ActivityOptions): Promise<Activity> {
  const { db, limitsOf, clock, runUuid, intervalMs = 5_000, onError } = options;
  // oxlint-disable-next-line no-restricted-globals -- a given time
  const today = () => new Date(clock()).toISOString().slice(0, 10);
  let day = today();
  /** Today's recorded events: those written by all processes, and those this one is still writing. */
  let recorded = await listRecorded(db, day, null);
  let pending = new Map<number, Counts>();

  function add(accountId: number, counts: Counts): void {
    const sum = pending.get(accountId);
    if (!sum) {
      pending.set(accountId, { ...counts });
      return;
    }
    sum.measurements += counts.measurements;
    sum.events += counts.events;
    sum.leftOut += counts.leftOut;
    sum.inputBytes += counts.inputBytes;
  }

  function move(accountId: number, events: number): void {
    recorded.set(accountId, (recorded.get(accountId) ?? 0) + events);
  }

  function startDay(): void {
    const now = today();
    if (now === day) return;
    day = now;
    recorded = new Map();
  }

  async function write(): Promise<void> {
    startDay();
    if (pending.size === 0) return;
    const [writing, of] = [pending, day];
    pending = new Map();
    for (const [accountId, { events }] of writing) move(accountId, events);
    try {
      await addCounts(db, runUuid, of, writing);
    } catch (error) {
      for (const [accountId, counts] of writing) {
        move(accountId, -counts.events);
        add(accountId, counts);
      }
      throw error;
    }
    const known = await listRecorded(db, of, [...writing.keys()]);
    if (of === day) for (const [accountId, events] of known) recorded.set(accountId, events);
  }

  let writing = Promise.resolve();
  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();

  return {
    count: add,
    eventsLeft(accountId) {
      startDay();
      const { eventsPerDay } = limitsOf(accountId);
      const counted = (recorded.get(accountId) ?? 0) + (pending.get(accountId)?.events ?? 0);
      return Math.max(0, eventsPerDay - counted);
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** What ingest counts the events of accounts with: for the day, and for the second. */
export function createEventCounters(
  activity: Pick<Activity, 'count' | 'eventsLeft'>,
  rate: Pick<EventRate, 'left' | 'take'>,
  limitsOf: LimitsOf,
) {
  return {
    eventsLeft: activity.eventsLeft,
    eventsLeftNow: (accountId: number) => rate.left(accountId),
    eventsPerMessage: (accountId: number) => eventsBurst(limitsOf(accountId).eventsPerSecond),
    /** The counts of one commit. `events` are sense events, `moves` the others, `alarms` those that opened. */
    count(accountId: number, counts: Counts & { moves: number; alarms: number }): void {
      const { measurements, leftOut, moves, alarms, inputBytes } = counts;
      const events = counts.events + alarms;
      activity.count(accountId, { measurements, events, leftOut, inputBytes });
      if (events + moves > 0) rate.take(accountId, events + moves);
    },
  };
}

/** For rows that belong to no running process: days that are over, and imports. */
const noProcess = `'00000000-0000-0000-0000-000000000000'`;

/**
 * What an account's devices sent and caused. `leftOut`: events over the day's quota. `inputBytes`: of what is kept so
 * that devices can be played again (`device_input`).
 */
type Counts = { measurements: number; events: number; leftOut: number; inputBytes: number };

/** Adds to this process's counts of a day (UTC, `2026-11-22`). Skips accounts that no longer exist. */
async function addCounts(
  sql: Sql,
  process: string,
  day: string,
  counts: ReadonlyMap<number, Counts>,
): Promise<void> {
  const all = [...counts.values()];
  await sql.query(
    `
      insert into account_activity as a
        (account_id, process, day, measurements, events, events_left_out, input_bytes)
      select account.id, $1::uuid, $2::date, c.measurements, c.events, c.left_out, c.input_bytes
        from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
          as c (account_id, measurements, events, left_out, input_bytes)
        join account on account.id = c.account_id
      on conflict (account_id, day, process) do update
         set measurements = a.measurements + excluded.measurements,
             events = a.events + excluded.events,
             events_left_out = a.events_left_out + excluded.events_left_out,
             input_bytes = a.input_bytes + excluded.input_bytes`,
    [
      process,
      day,
      [...counts.keys()],
      all.map(({ measurements }) => measurements),
      all.map(({ events }) => events),
      all.map(({ leftOut }) => leftOut),
      all.map(({ inputBytes }) => inputBytes),
    ],
  );
}

/**
 * Adds imported measurements of an account by their own days (UTC, counted from 1970) rather than the day of the
 * import: they count for `storedBytes` as long as they are kept.
 */
export async function addImported(
  sql: Sql,
  accountId: number,
  days: ReadonlyMap<number, number>,
): Promise<void> {
  await sql.query({
    name: 'add-imported',
    // Ordered, so that two imports to the same days lock them in the same order.
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

/** Events recorded on a day by all processes, by account; for these accounts, or for all. */
async function listRecorded(
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

// Approximate size on plain PostgreSQL, with indexes: a measurement takes 108 bytes; an event 557, plus 536 for each
// sense, plus 431 in the feed for a day. Compressed rows take less.
const measurementBytes = 100;
const eventBytes = 1_400;
/** Per text stored for a display, in addition to its own bytes; per former version; and per span of a profile. */
const displayBytes = 100;
const versionBytes = 200;
const spanBytes = 150;

/**
 * By account: bytes of former versions, of the spans of profiles, and of their former contents. `which`: a condition.
 */
const formerBytes = (which: (account: string) => string) => `
  select d.account_id, sum(f.bytes) as bytes
    from device d
   cross join lateral (
     select sum(bytes + ${versionBytes}) as bytes from former_version where device_id = d.id
      union all
     select count(*) * ${spanBytes} from device_profile_span where device_id = d.id) f
   where ${which('d.account_id')}
   group by d.account_id
   union all
  select p.account_id, sum(v.bytes + ${versionBytes})
    from former_version v
    join purpose p on p.id = v.purpose_id
   where v.device_id is null and ${which('p.account_id')}
   group by p.account_id
   union all
  select account_id, sum(bytes) from former_profile_content where ${which('account_id')} group by account_id`;
/** Per command, in addition to its params and what the device answered. */
const commandBytes = 400;

export type CountRetention = { eventsDays: number; measurementsDays: number };

/** Today's events, recorded or not, and roughly how much an account has stored; over all processes. */
export async function findActivity(
  sql: Sql,
  accountId: number,
  { eventsDays, measurementsDays }: CountRetention,
): Promise<{ eventsPerDay: number; storedBytes: number }> {
  const { rows } = await sql.query<{ eventsPerDay: number; storedBytes: number }>(
    `
      select coalesce(sum(events + events_left_out) filter (where age = 0), 0)::bigint
               as "eventsPerDay",
             coalesce(sum(events * ${eventBytes} + input_bytes) filter (where age <= $2), 0)::bigint
               + coalesce(sum(measurements) filter (where age <= $3), 0)::bigint * ${measurementBytes}
               + (select coalesce(max(purpose_bytes + profile_bytes), 0)
                    from account_usage where account_id = $1)
               + (select coalesce(sum(octet_length(k.text) + ${displayBytes}), 0)
                    from device d join kept_display k on k.device_id = d.id
                   where d.account_id = $1)
               + (select coalesce(sum(bytes), 0)::bigint
                    from (${formerBytes((account) => `${account} = $1`)}) as former)
               + (select coalesce(sum(bytes + ${commandBytes}), 0)
                    from command where account_id = $1)
               + (select coalesce(sum(bytes), 0)::bigint from backtest where account_id = $1)
               as "storedBytes"
        from (select *, (now() at time zone 'UTC')::date - day as age
                from account_activity where account_id = $1) as a`,
    [accountId, eventsDays, measurementsDays],
  );
  return rows[0] ?? { eventsPerDay: 0, storedBytes: 0 };
}

/** Roughly how much each account has stored; accounts with nothing are missing. */
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
              ${formerBytes((account) => `${account} is not null`)}
              union all
              select account_id, bytes + ${commandBytes} from command
              union all
              select account_id, bytes from backtest
              union all
              select account_id,
                     case when age <= $1 then events * ${eventBytes} + input_bytes else 0 end
                     + case when age <= $2 then measurements * ${measurementBytes} else 0 end
                from (select *, (now() at time zone 'UTC')::date - day as age
                        from account_activity) as a) as stored
       group by account_id
      having sum(bytes) > 0`,
    [eventsDays, measurementsDays],
  );
  return new Map(rows.map(({ account_id, bytes }) => [account_id, bytes]));
}

/** PostgreSQL's dates go no further back, so this stands for all days. */
const longestDays = 365_000;

/** Merges rows of past days into one for each account and day, and deletes them once nothing of theirs is stored. */
export async function compactActivity(
  sql: Sql,
  { eventsDays, measurementsDays }: CountRetention,
  nowTs: WallMs,
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
        (account_id, process, day, measurements, events, events_left_out, input_bytes)
      select account_id, ${noProcess}::uuid, day, sum(measurements), sum(events), sum(events_left_out),
             sum(input_bytes)
        from over
       group by account_id, day
      on conflict (account_id, day, process) do update
         set measurements = a.measurements + excluded.measurements,
             events = a.events + excluded.events,
             events_left_out = a.events_left_out + excluded.events_left_out,
             input_bytes = a.input_bytes + excluded.input_bytes`,
    [nowTs],
  );
  await sql.query(`delete from account_activity where day < ${today} - $2::integer`, [
    nowTs,
    Math.min(Math.max(eventsDays, measurementsDays), longestDays),
  ]);
}

type ThrottleDeps = {
  rate: EventRate;
  storage: Pick<StorageWatch, 'isFull'>;
  /** Stores a rejection that says that the account's storage is full. */
  tellFull: (device: DeviceIdentity, topic: string) => void;
  clock: Clock;
};

/** When to ask again: the quota may have been raised. */
const lookAgainMs = 1_000;
const dayMs = 86_400_000;

/** Combines the two quotas that slow an account's devices: `eventsPerSecond` and `storedBytes`. */
export function createAccountThrottle({
  rate,
  storage,
  tellFull,
  clock,
}: ThrottleDeps): AccountThrottle {
  let day = 0;
  /** Devices of full accounts that have got their rejection today (UTC). */
  const reportedTo = new Set<number>();
  return {
    isFull: (accountId) => storage.isFull(accountId),
    waitMs: (accountId) => (storage.isFull(accountId) ? lookAgainMs : rate.waitMs(accountId)),
    waits(device, topic) {
      if (!storage.isFull(device.accountId)) return;
      const today = Math.floor(clock() / dayMs);
      if (today !== day) reportedTo.clear();
      day = today;
      if (reportedTo.has(device.deviceId)) return;
      reportedTo.add(device.deviceId);
      tellFull(device, topic);
    },
  };
}

/** Knows which accounts have used up their quota `storedBytes`. */
type StorageWatch = {
  isFull(accountId: number): boolean;
  /** Estimates again; called every hour. */
  look(): Promise<void>;
  close(): Promise<void>;
};

const hourMs = 3_600_000;

/**
 * The estimate is at most an hour old, so an account may exceed its quota by an hour's worth. It is compared with the
 * current limit, so an operator's change takes effect at once.
 */
export async function startStorageWatch(options: {
  db: Sql;
  limitsOf: LimitsOf;
  retention: CountRetention;
  intervalMs?: number;
  onError: (error: unknown) => void;
}): Promise<StorageWatch> {
  const { db, limitsOf, retention, intervalMs = hourMs, onError } = options;
  let stored = new Map<number, number>();
  const read = async () => void (stored = await listStoredBytes(db, retention));
  await read();
  let reading = Promise.resolve();
  const look = () => (reading = reading.then(read).catch(onError));
  const timer = setInterval(() => void look(), intervalMs);
  timer.unref();
  return {
    isFull: (accountId) => (stored.get(accountId) ?? 0) >= limitsOf(accountId).storedBytes,
    look,
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}
