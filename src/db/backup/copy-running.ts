import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createScramClient } from '../pg-driver.ts';
import { type Copied, copyFiles, copyLog } from './backup.ts';

/**
 * Copies the cluster of a running server as PostgreSQL's documentation (25.3.4) has it: files first,
 * in whatever state they are, then the log of all that was written meanwhile, which makes them whole
 * when the copy is started. A slot of this session keeps the server from recycling that log.
 */
export async function copyRunning(
  connectionString: string,
  from: string,
  to: string,
): Promise<Copied> {
  const client = createScramClient({ connectionString, application_name: 'sensorium backup' });
  await client.connect();
  try {
    await client.query(
      `select pg_create_physical_replication_slot('sensorium_backup_' || pg_backend_pid(), true, true)`,
    );
    const started = await client.query<{ first: string }>(
      `select pg_walfile_name(pg_backup_start('sensorium', fast => true)) as first`,
    );
    const files = await copyFiles(from, to);
    const stopped = await client.query<{ last: string; label: string; tablespaces: string }>(
      `select pg_walfile_name(lsn) as last, labelfile as label, spcmapfile as tablespaces
         from pg_backup_stop(wait_for_archive => false)`,
    );
    const { first } = started.rows[0] ?? {};
    const { last, label, tablespaces } = stopped.rows[0] ?? {};
    if (!first || !last || !label) throw new Error('The database did not say what to copy.');
    if (tablespaces?.trim()) throw new Error('The database has tablespaces elsewhere.');
    await writeFile(join(to, 'backup_label'), label, { flush: true });
    const log = await copyLog(from, to, { first, last });
    return { files: files.files + log.files + 1, bytes: files.bytes + log.bytes + label.length };
  } finally {
    await client.end();
  }
}
