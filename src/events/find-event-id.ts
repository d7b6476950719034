import type { SenseEvent } from '../contract/event.ts';
import type { Sql } from '../db/sql.ts';

/** Which of a device's recorded events has this cause; undefined: none, for it is not recorded. */
export async function findEventId(
  sql: Sql,
  deviceUuid: string,
  { engine, senses }: Pick<SenseEvent['cause'], 'engine' | 'senses'>,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ eventId: string }>({
    name: 'find-event-id',
    // Those of one millisecond, mostly one.
    text: `
      select e.seq::text as "eventId"
        from event e
       where e.device_id = (select id from device where uuid = $1)
         and e.type = 'sense' and e.ts = ms_to_timestamp($2)
         and (e.body->'cause')::jsonb = $3::jsonb
       limit 1`,
    values: [deviceUuid, engine.ts, JSON.stringify({ engine, senses })],
  });
  return rows[0]?.eventId;
}
