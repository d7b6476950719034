import {
  estimateLoss,
  inForce,
  listRetention,
  settleRetention,
  type Retention,
  type RetentionChange,
} from '../history/retention.ts';
import { startEvery } from '../lib/every.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import type { ServiceLog } from '../log/logger.ts';
import type { ClockParts } from './clock.ts';
import type { ReleaseSteps } from './shutdown.ts';

const readEveryMs = 60_000;
/** The upkeep looks every hour, and at the start twice at once. */
const sayAgainMs = 30 * 60_000;

/** How long the history is kept. */
export type KeptHistory = {
  /** What is in force, as read within the last minute. */
  days: () => Retention;
  /** Settles what is configured with what is in force, and gives that. */
  settle: () => Promise<Retention>;
};

type KeptDeps = Pick<ClockParts, 'believed' | 'monotonicClock'> & {
  db: Database;
  config: Config;
  log: ServiceLog;
  releases: ReleaseSteps;
};

/**
 * In each process, so that each has a say: what one of them keeps longer is kept. What devices send late is judged by
 * what is in force, and not by what is only announced.
 */
export async function startKeptHistory(deps: KeptDeps): Promise<KeptHistory> {
  const { db, config, log, releases, believed, monotonicClock } = deps;
  const say = sayRetention(deps);
  let days = inForce([], config.retention);
  let saidMs = -Infinity;
  const onError = (err: unknown) =>
    log
      .child({ component: 'history' })
      .warn(
        { event: 'history.retention-unread', err },
        'How long the history is kept could not be read; the last known time is used.',
      );
  const read = async () => (days = inForce(await listRetention(db), config.retention));
  const settle = async () => {
    const nowTs = believed.believedTs();
    const changes = await settleRetention(db, config.retention, nowTs);
    const isSaid = monotonicClock() - saidMs < sayAgainMs;
    await say(isSaid ? changes.filter(({ kind }) => kind !== 'waiting') : changes, nowTs);
    if (changes.length > 0) saidMs = monotonicClock();
    return read();
  };
  await settle();
  releases.add(
    'retention',
    startEvery(readEveryMs, () => read().then(() => undefined, onError)),
  );
  return { days: () => days, settle };
}

/** Says in the log what a shorter setting will delete, and when. */
function sayRetention({ db, log }: Pick<KeptDeps, 'db' | 'log'>) {
  const historyLog = log.child({ component: 'history' });
  return async (changes: RetentionChange[], nowTs: number | null): Promise<void> => {
    for (const change of changes) {
      const { what, toDays } = change;
      if (change.kind === 'taken-back') {
        historyLog.info(
          { event: 'history.retention-kept', what, days: change.days },
          `The retention of ${what} stays: ${toDays} days were announced, and ${change.days} are configured here.`,
        );
        continue;
      }
      const loss = await estimateLoss(db, { what, toDays, nowTs: nowTs ?? 0 });
      const { rows, chunks } = loss;
      const gone = `about ${rows} ${what}${chunks > 0 ? ` in ${chunks} chunks` : ''} older than ${toDays} days`;
      const from = change.fromDays === null ? 'everything' : `${change.fromDays} days`;
      if (change.kind === 'shortened') {
        historyLog.warn(
          { event: 'history.retention-shortened', ...change, ...loss },
          `The retention of ${what} is ${toDays} days from now on, and was ${from}: ${gone} are deleted.`,
        );
        continue;
      }
      historyLog.warn(
        { event: 'history.retention-shortens', ...change, ...loss },
        `The configuration keeps ${what} for ${toDays} days, and ${from} is in force: ${gone} will be deleted a day after this was first said. To keep them, set the retention back in all processes before.`,
      );
    }
  };
}
