import process from 'node:process';
import { believeClock, readDatabaseTime } from '../clock/believed-time.ts';
import type { Sql } from '../db/sql.ts';
import { runOperatorCommand } from './operator-command.ts';

const usage = `Usage:
  npm run clock                 show the service's time, and whether it is trusted
  npm run clock -- believe      confirm that it is right, so that expired data may be deleted

The service uses its database's clock. If that clock was set, or is far from where it should be, it is in doubt and
nothing is deleted by it (docs/clocks.md). The environment is that of the service: DATABASE_URL, DATA_DIR.
`;

const timeOf = (ts: number) => new Date(ts).toISOString();

async function status(db: Sql): Promise<string[]> {
  const { ts, shared } = await readDatabaseTime(db);
  const clock = `The service's clock says ${timeOf(ts)}.`;
  if (shared === null)
    return [clock, 'No process has checked it yet: the first one to start trusts it.'];
  const { reckonedTs, doubtedTs } = shared;
  if (doubtedTs === null)
    return [clock, `The clock is trusted. It was last checked at ${timeOf(reckonedTs)}.`];
  return [
    clock,
    `The clock has been in doubt since ${timeOf(doubtedTs)}: nothing is deleted by it.`,
    'Judging by the time that has passed since it was trusted, it should be ' +
      `${timeOf(reckonedTs)} or up to a minute later.`,
    'If the clock is right, run: npm run clock -- believe',
  ];
}

async function believe(db: Sql): Promise<string[]> {
  const { before, believedTs } = await believeClock(db);
  const was = before?.doubtedTs ?? null;
  return [
    `${timeOf(believedTs)} is now trusted${was === null ? '; it was not in doubt' : ''}.`,
    'Running processes use it within ten seconds, and delete expired data within an hour.',
  ];
}

process.exitCode = await runOperatorCommand(process.argv.slice(2), {
  usage,
  commands: { status: ({ db }) => status(db), believe: ({ db }) => believe(db) },
});
