import type { Sql } from '../db/sql.ts';

export type ListedDevice = {
  uuid: string;
  token_version: number;
  name: string;
  labels: string[];
  pu_id: number;
  st_id: number;
  state_at: number;
  connected: boolean | null;
  last_seen_at: number | null;
};

type Row = ListedDevice & {
  id: number;
  /** To the microsecond. */
  created: string;
  /** Devices there were to read for this page. */
  found: number;
};

/** What is in memory at once, and read without a pause: so many devices, or as many as have names and labels of so many bytes. */
const pageDevices = 2_000;
const pageNameBytes = 1_048_576;

/**
 * Pages of an account's devices, in the order of their registration; none where it has none. `labels`: only
 * those that have one of these; null: all.
 */
export async function* listDevices(
  db: Sql,
  accountId: number,
  labels: readonly string[] | null = null,
): AsyncGenerator<ListedDevice[]> {
  let after = { created: '-infinity', id: 0 };
  for (;;) {
    const rows = await readPage(db, { accountId, labels }, after);
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    if (rows.length === last.found && last.found < pageDevices) return;
    after = last;
  }
}

/** Those whose names begin within the page's bytes: one at least. The others' names are not read. */
async function readPage(
  db: Sql,
  { accountId, labels }: { accountId: number; labels: readonly string[] | null },
  after: Pick<Row, 'created' | 'id'>,
): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `
      select p.id, p.created_at::text as created, p.found, p.uuid, p.token_version, p.name, p.labels,
             s.pu_id, s.st_id, s.state_at, c.connected, c.last_seen_at
        from (
          select d.*, count(*) over () as found,
                 sum(octet_length(d.name) + pg_column_size(d.labels))
                     over (order by d.created_at, d.id)
                   - octet_length(d.name) - pg_column_size(d.labels) as before
            from (
              select id, created_at, uuid, token_version, name, labels
                from device
               where account_id = $1 and (created_at, id) > ($2::timestamptz, $3)
                 and ($4::text[] is null or labels && $4)
               order by created_at, id
               limit ${pageDevices}) d) p
        join device_state s on s.device_id = p.id
        left join presence c on c.device_id = p.id
       where p.before < ${pageNameBytes}
       order by p.created_at, p.id`,
    [accountId, after.created, after.id, labels],
  );
  return rows;
}
