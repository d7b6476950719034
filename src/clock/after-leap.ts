/*
 * Corrects the times that a clock wrote while it was ahead. Until then, a row that is due at such a time would wait,
 * block its recipient, or count against its account for as long as the clock leaped. The corrections do not depend on
 * how far that was: a time ahead of a clock that is believed can only come from a clock that was wrong.
 *
 * Every column with a time is listed in this file, in `steps` or, with the reason, in `leftAlone`. A test compares both
 * with the database, so every new column needs a decision.
 */
import type { Sql } from '../db/sql.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** The longest time that an alarm's timer waits by itself, and that an alarm of a reported event stays open; ms. */
type LongestWaits = { ringMaxAgeMs: number; reportedForMs: number };

type Step = {
  /** Each time that it reads or changes, as `table.column`. */
  columns: string[];
  /** $1: the believed time. $2: rows per statement. $3, $4: `LongestWaits`. It must not change a row twice. */
  sql: string;
};

/** Rows that one transaction changes, so that nobody waits for it. */
const rowsAtOnce = 2_000;

const now = 'ms_to_timestamp($1::bigint)';
/** The clocks of processes differ by less. */
const soon = `ms_to_timestamp($1::bigint + 2000)`;
const isAhead = (column: string) => `${column} > ${soon}`;
/** Gives every parameter a type, in statements that do not use it too. */
const usesAll = '($1::bigint, $2::bigint, $3::bigint, $4::bigint) is not null';

function changing(
  table: string,
  { columns, where, set }: { columns: string[]; where: string; set: string },
): Step {
  return {
    columns: columns.map((column) => `${table}.${column}`),
    sql: `
      update ${table} set ${set}
       where ctid = any(array(
         select ctid from ${table} where (${where}) and ${usesAll} limit $2::bigint for update skip locked))`,
  };
}

function deleting(table: string, columns: string[], where: string): Step {
  return {
    columns: columns.map((column) => `${table}.${column}`),
    sql: `
      delete from ${table}
       where ctid = any(array(
         select ctid from ${table} where (${where}) and ${usesAll} limit $2::bigint for update skip locked))`,
  };
}

/** Unlike `least`, it keeps null. */
const atMost = (column: string, most: string) =>
  `${column} = case when ${column} > ${most} then ${most} else ${column} end`;

/** Replaces times that are ahead by the current one. */
function cut(table: string, ...columns: string[]): Step {
  return changing(table, {
    columns,
    where: columns.map(isAhead).join(' or '),
    set: columns.map((column) => atMost(column, now)).join(', '),
  });
}

/** Moves the end of a wait back together with its start, so that its length stays the same. */
function shifted(table: string, since: string, ...until: string[]): Step {
  const back = (column: string) => `${column} = ${column} - (${since} - ${now})`;
  return changing(table, {
    columns: [since, ...until],
    where: isAhead(since),
    set: [...until.map(back), `${since} = ${now}`].join(', '),
  });
}

const recipients = (table: 'contact' | 'recipient_turn', alsoCut: string[]) => {
  const back = (column: string) => `${column} = ${column} - (served_at - ${now})`;
  const waits = ['busy_until', 'rests_until', 'gathers_until'];
  return changing(table, {
    columns: ['served_at', 'recent', ...waits, ...alsoCut],
    where: isAhead('served_at'),
    set: [
      ...waits.map(back),
      `recent = array(select least(at, ${now}) from unnest(recent) with ordinality as r (at, nth) order by nth)`,
      ...alsoCut.map((column) => atMost(column, now)),
      `served_at = ${now}`,
    ].join(', '),
  });
};

const laterBy = (ms: string) => `ms_to_timestamp($1::bigint + ${ms})`;
/** The longest wait of an alarm's timer: until it repeats, if people were notified, or else until it looks again. */
const looksAgain =
  '(case when announced_at is null then $3::bigint else coalesce(repeat_ms, $3::bigint) end)';
const keeps = `coalesce((actions->>'keepMs')::bigint, 0)`;

/** The order matters: a device that was heard ahead of time gets a tick before `last_seen_at` is corrected. */
const steps: readonly Step[] = [
  {
    // The device's evidence may be from that time, whether or not something is due: a tick corrects it (`bringBack` in
    // src/ingest/rules/apply.ts).
    columns: ['presence.last_seen_at', 'device_due.due_at', 'rejection.rejected_at'],
    sql: `
      with heard as (
        update presence set last_seen_at = ${now}
         where device_id = any(array(
           select device_id from presence where ${isAhead('last_seen_at')} and ${usesAll}
            order by device_id limit $2::bigint for update skip locked))
        returning device_id
      ), refused as (
        -- Only the newest of a device are kept: one from the future would outlive all that follow.
        update rejection set rejected_at = ${now}
         where device_id = any(array(select device_id from heard)) and ${isAhead('rejected_at')}
      ), looked_at as (
        insert into device_due as due (device_id, account_id, due_at)
        select s.device_id, d.account_id, ${now}
          from heard h
          join device_state s on s.device_id = h.device_id and s.runtime is not null
          join device d on d.id = h.device_id and d.account_id is not null
         order by s.device_id
        on conflict (device_id) do update set due_at = least(due.due_at, excluded.due_at)
      )
      select device_id from heard`,
  },
  changing('device_due', {
    // A tick that comes too early finds nothing, and postpones the row.
    columns: ['due_at', 'retry_at'],
    where: `${isAhead('due_at')} or retry_at > ms_to_timestamp($1::bigint + 3600000)`,
    set: `due_at = least(due_at, ${now}), retry_at = null`,
  }),
  cut('device_profile', 'changed_at', 'delivered_at'),
  changing('notification', {
    columns: ['due_at', 'created_at', 'changed_at'],
    where: `state in ('queued', 'planned') and ${isAhead('greatest(created_at, changed_at)')}`,
    set: `due_at = due_at - (greatest(created_at, changed_at) - ${now}),
          ${atMost('created_at', now)}, ${atMost('changed_at', now)}`,
  }),
  recipients('contact', ['last_at']),
  recipients('recipient_turn', []),
  cut('delivering_process', 'seen_at'),
  changing('alarm', {
    columns: ['next_at', 'ends_at', 'expires_at', 'repeat_ms', 'announced_at'],
    where: `closed_at is null
            and (next_at > ${laterBy(looksAgain)} or ends_at > ${laterBy(keeps)} or expires_at > ${laterBy('$4::bigint')})`,
    set: [
      atMost('next_at', laterBy(looksAgain)),
      atMost('ends_at', laterBy(keeps)),
      atMost('expires_at', laterBy('$4::bigint')),
    ].join(', '),
  }),
  shifted('alarm', 'closed_at', 'again_at'),
  cut('alarm', 'extreme_due_at'),
  shifted('alarm_snooze', 'snoozed_at', 'until_at'),
  shifted('device_mute', 'muted_at', 'until_at'),
  // Rows that count towards a limit within the hour, or that wait.
  cut('account_mail', 'created_at', 'due_at', 'busy_until', 'done_at'),
  changing('email_change', {
    columns: ['expires_at'],
    where: `expires_at > ms_to_timestamp($1::bigint + 2000 + 1800000)`,
    set: `expires_at = ms_to_timestamp($1::bigint + 1800000)`,
  }),
  // The time for which a ticket is valid.
  deleting(
    'stream_ticket',
    ['expires_at'],
    `expires_at > ms_to_timestamp($1::bigint + 2000 + 60000)`,
  ),
  // Tokens from that time are not valid (src/sessions).
  deleting('session', ['created_at'], isAhead('created_at')),
  changing('session', {
    columns: ['used_at', 'expires_at', 'rotated_at'],
    where: isAhead('used_at'),
    set: `used_at = ${now}, expires_at = expires_at - (used_at - ${now}), ${atMost('rotated_at', now)}`,
  }),
  cut('api_key', 'used_at'),
  cut('idempotency_key', 'begun_at', 'alive_at'),
  cut('job', 'served_at'),
  cut('event_meaning', 'recorded_at'),
  cut('kept_display', 'kept_at'),
  cut('bridge_status', 'since', 'last_in', 'last_out', 'refreshed'),
  cut('refused_login', 'first_at', 'last_at'),
  cut('removed_uuid', 'removed_at'),
  // Counts of days in the future.
  deleting('message_count', ['day'], `day > (${now} at time zone 'UTC')::date`),
  changing('account_usage', {
    columns: ['registrations_day'],
    where: `registrations_day > (${now} at time zone 'UTC')::date`,
    set: `registrations_day = '-infinity', registrations = 0`,
  }),
  changing('account_usage', {
    columns: ['commands_day'],
    where: `commands_day > (${now} at time zone 'UTC')::date`,
    set: `commands_day = '-infinity', commands = 0`,
  }),
  cut('command', 'handed_at'),
  changing('account_usage', {
    columns: ['played_day'],
    where: `played_day > (${now} at time zone 'UTC')::date`,
    set: `played_day = '-infinity', played = 0`,
  }),
  changing('history_retention', {
    columns: ['next_at'],
    where: `next_at > ms_to_timestamp($1::bigint + 2000 + 86400000)`,
    set: `next_at = ms_to_timestamp($1::bigint + 86400000)`,
  }),
];

const fact = 'It records when something happened: nothing waits for it.';
const history = 'History: a row keeps the time with which it was stored.';

/** Times that need no correction, and why. */
const leftAlone: Readonly<Record<string, string>> = {
  'account.created_at': fact,
  'account.disabled_at': 'Only whether it is set matters.',
  'account.removed_at': 'Only whether it is set matters.',
  'account_activity.day': history,
  'account_audit.hour': history,
  'account_audit.last_at': history,
  'account_audit.ts': history,
  'account_event.ts': history,
  'alarm.acknowledged_at': fact,
  'alarm.began_arrived_at': fact,
  'alarm.began_at': fact,
  'alarm.filled_at': fact,
  'alarm.last_firing_at': fact,
  'alarm.over_arrived_at': fact,
  'alarm.over_at': fact,
  'alarm.since_at': fact,
  'alarm_change.recorded_at': history,
  'alarm_change.ts': history,
  'api_key.created_at': fact,
  'api_key.expires_at': 'A person chose it.',
  'backtest.heard_at': 'A run that was last heard of in the future counts as gone.',
  'backtest.reserved_on': 'It names the day to which what was not read is credited back.',
  'believed_time.doubted_at': 'src/clock/belief.ts judges the clock by it.',
  'believed_time.reckoned_at': 'src/clock/belief.ts judges the clock by it.',
  'command.accepted_at': fact,
  'command.created_at': fact,
  'command.ended_at': fact,
  'command.expires_at': 'Whoever gave the command said until when.',
  'command.running_at': fact,
  'command.sent_at': fact,
  'contact.confirmed_at': 'Only whether it is set matters.',
  'contact.created_at': fact,
  'contact.unsubscribed_at': 'Only whether it is set matters.',
  'device.configured_at': fact,
  'device.created_at': fact,
  'device_state.arrived_at': 'nextArrival in src/ingest/rules/arrival.ts begins anew after a leap.',
  'device_state.reported_at':
    'isOldReport in src/ingest/rules/apply.ts ignores a time that no device could report now.',
  'device_state.state_at': fact,
  'event.ts': history,
  'event_feed.recorded_at': history,
  'event_feed.ts': history,
  'event_sense.ts': history,
  'device_profile_span.from_at': fact,
  'device_profile_span.until_at': fact,
  'former_profile_content.ended_at': fact,
  'former_version.ended_at': fact,
  'former_version.made_at': fact,
  'job.created_at': fact,
  'job.ended_at': fact,
  'listening.heard_at':
    'src/connector-uptime sets it back when it next notes that somebody listens.',
  'listening_gap.from_at': 'src/connector-uptime cuts off gaps that lie in the future.',
  'listening_gap.to_at': 'src/connector-uptime cuts off gaps that lie in the future.',
  'measurement.ts': history,
  'notification.counted_on': 'It names the day to which a failed message is credited back.',
  'notification.unsent_day': fact,
  'profile.created_at': fact,
  'purpose.changed_at': fact,
  'purpose.created_at': fact,
  'push_token.added_at': fact,
  'removed_device.removed_at': 'The removal does not wait for a time.',
  'secret_check.noted_at': fact,
};

/** Every column with a time, as `table.column`: those that are brought back, and the others with the reason. */
export const timeColumns = { broughtBack: steps.flatMap(({ columns }) => columns), leftAlone };

/** Runs all steps. Returns how many rows of each table were changed. `nowTs`: the believed time, ms. */
export async function bringBack(
  db: Sql,
  nowTs: WallMs,
  { ringMaxAgeMs, reportedForMs }: LongestWaits,
): Promise<Record<string, number>> {
  const changed: Record<string, number> = {};
  for (const { columns, sql } of steps) {
    const [table = ''] = (columns[0] ?? '').split('.');
    const values = [Math.round(nowTs), rowsAtOnce, ringMaxAgeMs, reportedForMs];
    for (;;) {
      const { rowCount } = await db.query(sql, values);
      if ((rowCount ?? 0) > 0) changed[table] = (changed[table] ?? 0) + (rowCount ?? 0);
      if ((rowCount ?? 0) < rowsAtOnce) break;
    }
  }
  return changed;
}
