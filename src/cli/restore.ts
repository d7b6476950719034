import { join, resolve } from 'node:path';
import process from 'node:process';
import { type Config, loadConfig } from '../config/config.ts';
import { exists, restore } from '../db/backup/backup.ts';
import { findPortableManifest, type PortableManifest } from '../db/portable/write.ts';
import { findOwnSecret } from '../config/secret.ts';
import { describeStartError } from '../start-error.ts';
import {
  asksForHelp,
  createScreen,
  showRows,
  summarise,
  untilInterrupted,
} from './command-line.ts';
import { restorePortableCopy } from './portable/restore.ts';

const usage = `Usage:
  DATA_DIR=<new directory> npm run restore -- <backup>         restore a backup into a data directory
  DATABASE_URL=<empty database> npm run restore -- <backup>    restore a portable copy into a database

The data directory must not contain a database. A copy of files is recovered when the service next
starts; a portable copy is complete when this command ends.
`;

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const [backup, ...rest] = args;
  const wrong = args.find((arg) => arg.startsWith('-'));
  if (backup === undefined || wrong !== undefined || rest.length > 0) {
    const problem = wrong ? `Unknown option '${wrong}'.` : 'Expected the directory of one backup.';
    process.stderr.write(`${problem}\n\n${usage}`);
    return 2;
  }
  const config = await loadConfig(process.env);
  const { dataDir, databaseUrl, secret } = config;
  const backupDir = resolve(backup);
  const portable = await findPortableManifest(backupDir);
  if (portable) return restorePortably(config, backupDir, portable);
  if (databaseUrl !== null) {
    console.error(
      `DATABASE_URL is set, but ${backupDir} is not a portable copy: restore a copy of files ` +
        'into a DATA_DIR (docs/backup.md).',
    );
    return 1;
  }
  const { createdTs } = await restore(backupDir, dataDir);
  console.log(`Restored the backup of ${new Date(createdTs).toISOString()} to ${dataDir}.`);
  console.log('Start the service as before, with the same DATA_DIR.');
  if (secret === null && (await findOwnSecret(dataDir)) === null)
    console.log(
      'The backup does not contain the secret: give the service the SECRET or SECRET_FILE that ' +
        'the database was used with.',
    );
  return 0;
}

/** Restores a portable copy: gives the exit status. */
async function restorePortably(
  config: Config,
  copyDir: string,
  manifest: PortableManifest,
): Promise<number> {
  const screen = createScreen(process.stdout);
  const startMs = performance.now();
  const left =
    config.databaseUrl === null
      ? 'The database was removed.'
      : 'The database is incomplete: run the command again, or drop the database.';
  await untilInterrupted(left, (signal) =>
    restorePortableCopy(config, copyDir, manifest, {
      onRows: showRows(screen),
      onStep: (step) => screen.say(step),
      signal,
    }),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const made = new Date(manifest.createdTs).toISOString();
  screen.say(`Restored the copy of ${made} (${manifest.source}): ${summarise(manifest, seconds)}.`);
  if (config.databaseUrl === null && !(await exists(join(copyDir, 'secret'))))
    screen.say(
      'The copy does not contain the secret: start the service with the SECRET it was used with.',
    );
  screen.say(
    config.databaseUrl === null
      ? 'Start the service as before, with the same DATA_DIR.'
      : 'Start the service as before, with the same DATABASE_URL.',
  );
  return 0;
}

function explain(error: unknown): number {
  for (const line of describeStartError(error) ?? [error]) console.error(line);
  return 1;
}
