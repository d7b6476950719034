import process from 'node:process';
import { readDatabaseTime } from '../clock/believed-time.ts';
import {
  applyNext,
  estimateLoss,
  kept,
  listRetention,
  wanted,
  type RetentionRow,
} from '../history/retention.ts';
import { runOperatorCommand, type Tools } from './operator-command.ts';

const usage = `Usage:
  npm run retention             show how long the history is kept, and what a shorter setting would delete and when
  npm run retention -- apply    delete what was announced right away instead of after a day

The retention is set in config/ (retention). A longer setting takes effect at once. A shorter one takes effect a day after
a process first started with it, unless it is reverted before then. The environment is that of the service: DATABASE_URL,
DATA_DIR.
`;

const inDays = (days: number | null) => (days === null ? 'everything' : `${days} days`);

async function status({ db, retention }: Tools): Promise<string[]> {
  const { ts } = await readDatabaseTime(db);
  const rows = await listRetention(db);
  const lines: string[] = [];
  for (const what of kept) {
    const row = rows.find((one) => one.what === what);
    const configured = wanted(retention, what);
    if (!row) {
      lines.push(`${what}: no retention is in force yet; ${configured} days are configured here.`);
      continue;
    }
    lines.push(`${what}: ${inDays(row.days)} in force; ${configured} days are configured here.`);
    const { nextDays, nextTs } = row;
    if (nextDays === null || nextTs === null) continue;
    const { rows: count, chunks } = await estimateLoss(db, { what, toDays: nextDays, nowTs: ts });
    lines.push(
      `  ${nextDays} days from ${new Date(nextTs).toISOString()}: deletes about ${count} ${what}${chunks > 0 ? ` in ${chunks} chunks` : ''}.`,
    );
  }
  return lines;
}

async function apply({ db }: Tools): Promise<string[]> {
  const changed = await applyNext(db);
  if (changed.length === 0) return ['No shorter retention is pending: nothing was changed.'];
  const say = ({ what, days, nextDays }: RetentionRow) =>
    `${what}: now ${inDays(nextDays)}, previously ${inDays(days)}.`;
  return [...changed.map(say), 'Older data is deleted within an hour.'];
}

process.exitCode = await runOperatorCommand(process.argv.slice(2), {
  usage,
  commands: { status, apply },
});
