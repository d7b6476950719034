import { join, resolve } from 'node:path';
import process from 'node:process';
import { type Config, loadConfig, projectDir } from '../config/config.ts';
import { backUp } from '../db/backup/backup.ts';
import { backUpPortable, type CopyOptions } from '../db/portable/write.ts';
import { describeStartError } from '../start-error.ts';
import {
  asksForHelp,
  createScreen,
  showRows,
  summarise,
  untilInterrupted,
} from './command-line.ts';
import { reachUnchanged, requireDatabase } from './operator-command.ts';

const usage = `Usage:
  npm run backup [-- <directory>]               copy the embedded database's files, while it runs
  npm run backup -- --portable [<directory>]    copy the rows of any database, to restore into any other

The command creates the directory, by default backups/<time> in the project. The backup contains the data
directory's secret: protect it like the data. DATA_DIR and DATABASE_URL are those of the service. See docs/backup.md.
`;

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(given: string[]): Promise<number> {
  const isPortable = given.includes('--portable');
  const args = given.filter((arg) => arg !== '--portable');
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const wrong = args.find((arg) => arg.startsWith('-'));
  if (wrong !== undefined || args.length > 1) {
    const problem = wrong ? `Unknown option '${wrong}'.` : 'Expected one directory.';
    process.stderr.write(`${problem}\n\n${usage}`);
    return 2;
  }
  const config = await loadConfig(process.env);
  const time = new Date().toISOString().replaceAll(':', '-');
  const target = args[0] ? resolve(args[0]) : join(projectDir, 'backups', time);
  if (isPortable) return backUpPortably(config, target);
  if (config.databaseUrl !== null) {
    console.error(
      'DATABASE_URL is set: back up that database with its own tools, or with --portable ' +
        '(docs/backup.md).',
    );
    return 1;
  }
  const { files, bytes } = await backUp(config.dataDir, target);
  console.log(`Backed up ${config.dataDir}: ${files} files, ${Math.ceil(bytes / 2 ** 20)} MB.`);
  if (config.secret !== null)
    console.log(
      `The backup does not contain the secret: also keep what ${config.secretPlace} provides. ` +
        'The restored database works with no other secret.',
    );
  console.log(`Restore it with: DATA_DIR=<new directory> npm run restore -- ${target}`);
  return 0;
}

function explain(error: unknown): number {
  for (const line of describeStartError(error) ?? [error]) console.error(line);
  return 1;
}

/** Runs `npm run backup -- --portable`. Returns the exit status. */
async function backUpPortably(config: Config, target: string): Promise<number> {
  await requireDatabase(config);
  const screen = createScreen(process.stdout);
  const startMs = performance.now();
  const { manifest, hasSecret } = await untilInterrupted('The copy was removed.', (signal) =>
    copy(config, target, { onRows: showRows(screen), signal }),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  screen.say(`Copied ${manifest.source}: ${summarise(manifest, seconds)}.`);
  screen.say(
    hasSecret
      ? 'The backup contains the secret: protect it like the data.'
      : 'The backup does not contain the secret: also keep what SECRET or SECRET_FILE provides.',
  );
  const into = 'DATA_DIR=<new directory> or DATABASE_URL=<empty database>';
  screen.say(`Restore it with: ${into} npm run restore -- ${target}`);
  return 0;
}

async function copy(config: Config, target: string, options: CopyOptions) {
  const { connectionString, release } = await reachUnchanged(config);
  try {
    const { dataDir } = config;
    return await backUpPortable({ connectionString, dataDir }, target, options);
  } finally {
    await release();
  }
}
