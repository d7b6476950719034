import type { Sql } from '../db/sql.ts';

/** The state of a bridge, as its process reports it to the others. Times in milliseconds. */
type BridgeRow = {
  connectorId: number;
  /** Identifies one run of a process. */
  runUuid: string;
  connectorName: string;
  /** Its machine and process id, for people. */
  process: string;
  isConnected: boolean;
  sinceTs: number;
  reason: string | null;
  isLeaseHeld: boolean | null;
  lastInTs: number | null;
  lastOutTs: number | null;
  refused: number;
};

/** What others need to know about a bridge. */
export type LiveBridge = Omit<BridgeRow, 'runUuid' | 'connectorName'>;

/** After this many seconds without a refresh the process counts as gone. */
const goneSeconds = 15;
/** After this many seconds the next process that writes removes the row. */
const removedSeconds = 60;

/** Saves a bridge's state. Uses the database's clock, because those of the processes may differ. */
export async function saveBridgeStatus(db: Sql, row: BridgeRow): Promise<void> {
  await db.query(
    `
      with gone as (
        select connector_id, run_uuid
          from bridge_status
         where refreshed < now() - $12 * interval '1 second'
           and run_uuid <> $2
           for update skip locked
      ), removed as (
        delete from bridge_status b
         using gone g
         where b.connector_id = g.connector_id and b.run_uuid = g.run_uuid
      )
      insert into bridge_status (
        connector_id, run_uuid, connector_name, process, connected, since, reason, lease_held,
        last_in, last_out, refused, refreshed)
      values ($1, $2, $3, $4, $5, ms_to_timestamp($6), $7, $8,
        ms_to_timestamp($9), ms_to_timestamp($10), $11, now())
      on conflict (connector_id, run_uuid) do update
         set connected = excluded.connected,
             since = excluded.since,
             reason = excluded.reason,
             lease_held = excluded.lease_held,
             last_in = excluded.last_in,
             last_out = excluded.last_out,
             refused = excluded.refused,
             refreshed = excluded.refreshed`,
    [
      row.connectorId,
      row.runUuid,
      row.connectorName,
      row.process,
      row.isConnected,
      row.sinceTs,
      row.reason,
      row.isLeaseHeld,
      row.lastInTs,
      row.lastOutTs,
      row.refused,
      removedSeconds,
    ],
  );
}

/** Removes the row of a process that shuts down. */
export async function removeBridgeStatus(
  db: Sql,
  { connectorId, runUuid }: Pick<BridgeRow, 'connectorId' | 'runUuid'>,
): Promise<void> {
  await db.query('delete from bridge_status where connector_id = $1 and run_uuid = $2', [
    connectorId,
    runUuid,
  ]);
}

/** The bridges that some process runs now. */
export async function listLiveBridges(db: Sql): Promise<LiveBridge[]> {
  const { rows } = await db.query<LiveBridge>(
    `select connector_id as "connectorId",
            process,
            connected as "isConnected",
            since as "sinceTs",
            reason,
            lease_held as "isLeaseHeld",
            last_in as "lastInTs",
            last_out as "lastOutTs",
            refused
       from bridge_status
      where refreshed > now() - $1 * interval '1 second'
      order by connector_id, refreshed`,
    [goneSeconds],
  );
  return rows;
}
