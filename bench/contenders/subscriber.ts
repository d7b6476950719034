import { connectAsync } from 'mqtt';
import pg from 'pg';
import { schemaOf } from '../database.ts';

// What users run beside Mosquitto: a subscriber that inserts measurements into PostgreSQL, in batches or row by row.
// Arguments: broker's URL, database's URL, `batch` or `row`.
const [brokerUrl = '', databaseUrl = '', mode = 'batch'] = process.argv.slice(2);

type Row = { device: string; sId: string; ts: number; val: number };

const maxBatch = 2_000;
const maxWaiting = 10_000;
const maxInFlight = 2;

const maxConnections = 10;

const pool = new pg.Pool({
  connectionString: databaseUrl,
  max: maxConnections,
  options: `-c search_path=${await schemaOf(databaseUrl)},public`,
});
const waiting: Row[] = [];
let inFlight = 0;
let stored = 0;
const readOn: (() => void)[] = [];

/** Rows of the table of series, by device and sense; looked up once. */
const seriesIds = new Map<string, string>();

const findSeries = `
  insert into series (device_id, s_id)
  select device_id, s_id from unnest($1::bigint[], $2::text[]) as m (device_id, s_id)
   order by device_id, s_id
      on conflict (device_id, s_id) do update set s_id = excluded.s_id
  returning id, device_id, s_id`;

const statement = `
  insert into measurement (series_id, ts, val)
  select series_id, to_timestamp(ms / 1000.0), val
    from unnest($1::bigint[], $2::bigint[], $3::float8[]) as m (series_id, ms, val)
  on conflict do nothing`;

/** Everything that arrived while earlier transactions were under way goes into the next one. */
function flush(): void {
  while (inFlight < maxInFlight && waiting.length > 0) {
    const batch = waiting.splice(0, maxBatch);
    inFlight += 1;
    void insert(batch).then(() => {
      inFlight -= 1;
      stored += batch.length;
      flush();
    });
  }
  if (waiting.length < maxWaiting) for (const resume of readOn.splice(0)) resume();
}

const nameOf = ({ device, sId }: { device: string; sId: string }) => `${device} ${sId}`;

async function learnSeries(rows: Row[]): Promise<void> {
  const unknown = new Map(
    rows.filter((row) => !seriesIds.has(nameOf(row))).map((row) => [nameOf(row), row]),
  );
  if (unknown.size === 0) return;
  const fresh = [...unknown.values()];
  const { rows: found } = await pool.query<{ id: string; device_id: string; s_id: string }>(
    findSeries,
    [fresh.map((row) => row.device), fresh.map((row) => row.sId)],
  );
  for (const { id, device_id, s_id } of found)
    seriesIds.set(nameOf({ device: device_id, sId: s_id }), id);
}

async function insert(rows: Row[]): Promise<void> {
  await learnSeries(rows);
  await pool.query({
    name: 'insert',
    text: statement,
    values: [
      rows.map((row) => seriesIds.get(nameOf(row))),
      rows.map((row) => row.ts),
      rows.map((row) => row.val),
    ],
  });
}

const client = await connectAsync(brokerUrl, { clean: false, clientId: 'subscriber' });
client.handleMessage = ({ topic, payload }, done) => {
  const device = String(topic.split('/')[1]);
  const parsed = JSON.parse(payload.toString()) as Omit<Row, 'device'> | Omit<Row, 'device'>[];
  const rows = (Array.isArray(parsed) ? parsed : [parsed]).map((each) => ({ device, ...each }));
  if (mode === 'row') void storeAtOnce(rows, () => done());
  else keep(rows, () => done());
};

/** One insert per message, as many at once as the pool has connections. */
async function storeAtOnce(rows: Row[], readNext: () => void): Promise<void> {
  inFlight += 1;
  if (inFlight < maxConnections) readNext();
  else readOn.push(readNext);
  await insert(rows);
  inFlight -= 1;
  stored += rows.length;
  readOn.shift()?.();
}

/** Reads the next message at once while there is space. */
function keep(rows: Row[], readNext: () => void): void {
  for (const row of rows) waiting.push(row);
  if (waiting.length < maxWaiting) readNext();
  else readOn.push(readNext);
  setImmediate(flush);
}

await client.subscribeAsync('devices/+/up/measurements', { qos: 1 });
process.stdin.on('data', () => console.log(JSON.stringify({ stored })));
console.log(JSON.stringify({ ready: true }));
