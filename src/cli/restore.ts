import { resolve } from 'node:path';
import process from 'node:process';
import { loadConfig } from '../config.ts';
import { restore } from '../db/backup/restore.ts';
import { findOwnSecret } from '../secret.ts';
import { describeStartError } from '../start-error.ts';

const usage = `Usage:
  DATA_DIR=<new directory> npm run restore -- <backup>   put a backup into a data directory

The data directory must hold no database yet. The next start of the service recovers it.
`;

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main([backup, ...rest]: string[]): Promise<number> {
  if (backup === undefined || backup.startsWith('-') || rest.length > 0) {
    process.stderr.write(usage);
    return backup === '--help' || backup === '-h' ? 0 : 2;
  }
  const { dataDir, databaseUrl, secret } = await loadConfig(process.env);
  if (databaseUrl !== null) {
    console.error(
      'DATABASE_URL is set: restore that database with its own tools (docs/storage.md).',
    );
    return 1;
  }
  const { createdTs } = await restore(resolve(backup), dataDir);
  console.log(`Restored the backup of ${new Date(createdTs).toISOString()} to ${dataDir}.`);
  console.log('Start the service as before, with the same DATA_DIR.');
  if (secret === null && (await findOwnSecret(dataDir)) === null)
    console.log(
      'The backup holds no secret: give the service the SECRET or SECRET_FILE that the database was used with.',
    );
  return 0;
}

function explain(error: unknown): number {
  for (const line of describeStartError(error) ?? [error]) console.error(line);
  return 1;
}
