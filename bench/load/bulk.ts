import { openDatabase } from '../../src/db/database.ts';
import { registerAccount, registerDevices } from '../api.ts';
import { schemaOf } from '../database.ts';
import { startBenchService } from '../service.ts';
import { devicesOfImport, type BulkRow } from './of-bulk.ts';
import { timeBeside } from './beside.ts';
import { timeExports, timeLists } from './time-exports.ts';
import { timeImports } from './time-imports.ts';

/**
 * Measurements in bulk: an import, exports, and the lists that a dashboard reads. Each is compared with the database's
 * own time for the same: `COPY`, or the bare query. Needs an empty database.
 */
export async function timeBulk(url: string, rows: number, tell: (line: string) => void) {
  const service = await startBenchService({ databaseUrl: url, redisUrl: null });
  const db = openDatabase({
    connectTimeoutMs: 5_000,
    onIdleError: () => undefined,
    connectionString: url,
    schema: await schemaOf(url),
    maxConnections: 1,
    statementTimeoutMs: 600_000,
  });
  const write = ({ name, service: ours, database }: BulkRow) =>
    tell(
      `${name.padEnd(62)}${ours.toFixed(2).padStart(8)}${database.toFixed(2).padStart(8)}${(ours / database).toFixed(2).padStart(8)}`,
    );
  try {
    tell(`\n${'seconds'.padEnd(62)} service    alone   ratio`);
    const { token } = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, token, devicesOfImport);
    await timeImports({ service, db, token, devices, rows }, write, tell);
    await timeExports({ service, db, token, devices, rows }, write);
    await timeLists({ service, db, token, devices, rows }, write);
    await timeBeside({ service, db, token, devices, rows }, url, tell);
  } finally {
    await db.close();
    await service.stop();
  }
}
