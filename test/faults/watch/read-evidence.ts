import type pg from 'pg';
import { runOn } from '../../support/template.ts';
import type { Evidence, Watched } from './evidence.ts';

type Stored = Pick<Evidence, 'gaps' | 'connectors' | 'waiting'> & {
  devices: Map<string, Pick<Watched, 'firings' | 'alarms'>>;
};

/** What the database has of these devices, of messages to people, and of the times of listening. */
export async function readStored(databaseUrl: string, uuids: string[]): Promise<Stored> {
  return runOn(databaseUrl, async (client) => {
    // In this order, so that what is read later is not missing in what was read before.
    const alarms = await readAlarms(client, uuids);
    const firings = await readFirings(client, uuids);
    const devices = new Map(
      uuids.map((uuid) => [
        uuid,
        { firings: firings.get(uuid) ?? [], alarms: alarms.get(uuid) ?? [] },
      ]),
    );
    const waiting = await countWaiting(client, uuids);
    return {
      devices,
      waiting,
      gaps: await readGaps(client),
      connectors: await countConnectors(client),
    };
  });
}

/** Ends the leases of deliveries whose process was killed or lost its database, so that others take them over. */
export async function endLeases(databaseUrl: string): Promise<void> {
  await runOn(databaseUrl, (client) => client.query('update contact set busy_until = null'));
}

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`;

async function readAlarms(client: pg.Client, uuids: string[]) {
  const { rows } = await client.query<Watched['alarms'][number] & { uuid: string }>(
    `select device_uuid as uuid, id::float8 as "alarmId", ${ms('since_at')} as "sinceTs",
            closed_by as "closedBy"
       from alarm
      where device_uuid = any($1::uuid[])`,
    [uuids],
  );
  return Map.groupBy(rows, ({ uuid }) => uuid);
}

async function readFirings(client: pg.Client, uuids: string[]): Promise<Map<string, number[]>> {
  const { rows } = await client.query<{ uuid: string; firings: number[] }>(
    `select d.uuid, array_agg(${ms('e.ts')}) as firings
       from event e join device d on d.id = e.device_id
      where d.uuid = any($1::uuid[]) and e.type = 'sense'
      group by d.uuid`,
    [uuids],
  );
  return new Map(rows.map(({ uuid, firings }) => [uuid, firings]));
}

async function countWaiting(client: pg.Client, uuids: string[]): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::integer as count
       from notification n join device d on d.id = n.device_id
      where d.uuid = any($1::uuid[]) and n.state = 'queued'`,
    [uuids],
  );
  return rows[0]?.count ?? 0;
}

/** The gaps of the connectors that devices use; others of the process have the same. A gap is known once it is over. */
async function readGaps(client: pg.Client): Promise<Evidence['gaps']> {
  const { rows } = await client.query<Evidence['gaps'][number]>(
    `select connector_id as "connectorId", ${ms('from_at')} as "fromTs", ${ms('to_at')} as "toTs"
       from listening_gap
      where connector_id in (select connector_id from device)`,
  );
  return rows;
}

async function countConnectors(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'select count(distinct connector_id)::integer as count from device',
  );
  return rows[0]?.count ?? 0;
}
