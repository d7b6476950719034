import { readFileSync } from 'node:fs';
import { CopyRows } from '../../src/db/database.ts';
import { readHistoryKind } from '../../src/history/retention.ts';
import { seconds, tsOf, type Bulk, type BulkRow } from './of-bulk.ts';

/** Imports of new rows, of existing rows, and into compressed days if there are any. */
export async function timeImports(
  bulk: Bulk,
  write: (row: BulkRow) => void,
  tell: (line: string) => void,
) {
  const { db, service, rows } = bulk;
  const millions = `${rows / 1_000_000} M lines`;
  const before = memoryOf(service.pid);
  const fresh = await seconds(() => importLines(bulk, 0));
  write({ name: `import of ${millions}, new`, service: fresh, database: await copyIn(bulk, 100) });
  const again = await seconds(() => importLines(bulk, 0));
  const repeated = await seconds(() => db.query(insertAgain));
  write({ name: `import of ${millions}, there already`, service: again, database: repeated });
  if ((await readHistoryKind(db)) === 'timescaledb') {
    await db.query(`select compress_chunk(chunk, true) from show_chunks('measurement') chunk`);
    const packed = await seconds(() => importLines(bulk, 200));
    const alone = await copyIn(bulk, 300);
    write({
      name: `import of ${millions}, new, into compressed days`,
      service: packed,
      database: alone,
    });
    await db.query(`select compress_chunk(chunk, true) from show_chunks('measurement') chunk`);
  }
  tell(`  memory of the service: ${before} MB before, ${memoryOf(service.pid)} MB at most`);
  await db.query('vacuum (analyze) measurement');
}

/** The same rows again, as for a server that knows them: they are looked up and not stored. */
const insertAgain = `
  insert into measurement (series_id, ts, val, long)
  select series_id, ts, val, long from measurement
      on conflict do nothing`;

const linesAtOnce = 2_000;

/** CSV as an export writes it. Another `offsetMs` gives other measurements. */
function* linesOf({ devices, rows }: Bulk, offsetMs: number): Generator<Buffer> {
  yield Buffer.from('deviceAuthUuid,sId,ts,val,lat,long\r\n');
  for (let from = 0; from < rows; from += linesAtOnce) {
    let text = '';
    for (let n = from; n < Math.min(rows, from + linesAtOnce); n += 1) {
      const { uuid = '' } = devices[n % devices.length] ?? {};
      text += `${uuid},0x01,${tsOf(rows, n, offsetMs)},${20 + (n % 97) / 10},,\r\n`;
    }
    yield Buffer.from(text);
  }
}

/** Imports all lines, each measurement this much later than with 0. */
export async function importLines(bulk: Bulk, offsetMs: number): Promise<void> {
  const { service, token } = bulk;
  const response = await fetch(`${service.baseUrl}/v2/measurements/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'text/csv' },
    body: ReadableStream.from(linesOf(bulk, offsetMs)),
    duplex: 'half',
  });
  const text = await response.text();
  const { rejected } = JSON.parse(text) as { rejected?: number };
  if (response.status !== 200 || rejected !== 0) throw new Error(text.slice(0, 1_000));
}

/** All rows by one `COPY`, without the text of their lines. */
async function copyIn({ db, devices, rows }: Bulk, offsetMs: number): Promise<number> {
  const { rows: series } = await db.query<{ id: number }>('select id from series order by id');
  const copied = new CopyRows();
  for (let n = 0; n < rows; n += 1) {
    copied
      .row(4)
      .bigint(series[n % devices.length]?.id ?? 0)
      .timestamptz(tsOf(rows, n, offsetMs))
      .float8(20 + (n % 97) / 10)
      .float8(Number.NaN);
  }
  const bytes = copied.end();
  const statement = 'copy measurement (series_id, ts, val, long) from stdin (format binary)';
  return seconds(() => db.transaction((tx) => tx.copyIn(statement, bytes)));
}

/** The most memory that a process has ever used, MB (proc_pid_status(5)). */
function memoryOf(pid: number): number {
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1_024);
}
