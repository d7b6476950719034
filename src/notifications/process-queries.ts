import type { Sql } from '../db/sql.ts';
import type { MessageChannel } from './sort-out.ts';

/** Says for some minutes that a process with these channels delivers; of those that are long gone nothing is kept. */
export async function tellChannels(
  sql: Sql,
  process: string,
  { channels, nowMs }: { channels: string[]; nowMs: number },
): Promise<void> {
  await sql.query(
    `with old as (
       delete from delivering_process where seen_at < ms_to_timestamp($3) - interval '1 day'
     )
     insert into delivering_process (process, channels, seen_at)
     values ($1, $2, ms_to_timestamp($3))
     on conflict (process) do update set channels = excluded.channels, seen_at = excluded.seen_at`,
    [process, channels, nowMs],
  );
}

export async function forgetProcess(sql: Sql, process: string): Promise<void> {
  await sql.query('delete from delivering_process where process = $1', [process]);
}

/** Processes renew what they have each minute. */
const seenWithinMs = 180_000;

/**
 * The channels of this process and of others that deliver now. A log that takes SMS counts here (`sms-log`),
 * not where people are shown what is configured.
 */
export async function findConfigured(
  sql: Sql,
  ownChannels: readonly MessageChannel[],
  nowMs: number,
): Promise<Set<MessageChannel>> {
  const { rows } = await sql.query<{ channel: MessageChannel | 'sms-log' }>({
    name: 'outbox-find-configured',
    text: `select distinct unnest(channels) as channel
             from delivering_process where seen_at > ms_to_timestamp($1)`,
    values: [nowMs - seenWithinMs],
  });
  const others = rows.map(({ channel }) => (channel === 'sms-log' ? 'sms' : channel));
  return new Set([...ownChannels, ...others]);
}
