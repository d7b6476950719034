import process from 'node:process';
import { believeClock, readDatabaseTime } from '../clock/believed-time.ts';
import type { Sql } from '../db/sql.ts';
import { runOperatorCommand } from './operator-command.ts';

const usage = `Usage:
  npm run clock                 say what time it is for the service, and whether that is believed
  npm run clock -- believe      say that it is right: what is past its time may be deleted by it

The service goes by the clock of its database. Where that was set, or is far from where it should be, it is in doubt, and
nothing is deleted by it (docs/clocks.md). The environment is that of the service: DATABASE_URL, DATA_DIR.
`;

const timeOf = (ts: number) => new Date(ts).toISOString();

async function status(db: Sql): Promise<string[]> {
  const { ts, shared } = await readDatabaseTime(db);
  const clock = `The service's clock says ${timeOf(ts)}.`;
  if (shared === null)
    return [clock, 'No process has looked at it yet: the first one believes it.'];
  const { reckonedTs, doubtedTs } = shared;
  if (doubtedTs === null) return [clock, `It is believed, and was at ${timeOf(reckonedTs)}.`];
  return [
    clock,
    `It is in doubt since ${timeOf(doubtedTs)}: nothing is deleted by it.`,
    `By what has passed since it was believed it would be ${timeOf(reckonedTs)} or a minute later.`,
    'If the clock is right, say so: npm run clock -- believe',
  ];
}

async function believe(db: Sql): Promise<string[]> {
  const { before, believedTs } = await believeClock(db);
  const was = before?.doubtedTs ?? null;
  return [
    `${timeOf(believedTs)} is believed from now on${was === null ? '; it was not in doubt' : ''}.`,
    'Running processes go by it within ten seconds, and delete what is past its time within an hour.',
  ];
}

process.exitCode = await runOperatorCommand(process.argv.slice(2), {
  usage,
  commands: { status: ({ db }) => status(db), believe: ({ db }) => believe(db) },
});
