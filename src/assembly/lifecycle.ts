import { Gauge, type Registry } from 'prom-client';
import type { Sql } from '../db/sql.ts';
import type { WriteProbe, WriteTrouble } from '../db/write-probe.ts';
import type { Clock, MonotonicClock } from '../lib/clock.ts';
import { startEvery } from '../lib/every.ts';
import type { Log } from '../log/logger.ts';

/** Longer than a healthy answer takes, shorter than anybody waits for a status. */
const patienceMs = 1_000;

/** Whether something answers in time; never throws. */
export async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  return (await answerOf(() => ask().then(() => true))) ?? false;
}

/** What something answers in time; null where it does not. Never throws. */
export async function answerOf<T>(ask: () => Promise<T>): Promise<T | null> {
  const { promise: tooLate, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), patienceMs);
  const answered = ask().catch(() => null);
  return Promise.race([answered, tooLate]).finally(() => clearTimeout(timer));
}

export const databaseAnswers = (db: Sql) => answers(() => db.query('select 1'));

/** What does not work, as `GET /v2/status` names it. */
export type HealthPart = 'database-writes' | 'sessions';

/** Why, as a code of docs/operations.md, with what only the log says. */
export type Trouble = { reason: string; text: string; details?: Record<string, unknown> };

/** Null: all is well; `unknown`: whoever could say does not answer. Never rejects. */
export type HealthCheck = () => Promise<Trouble | null | 'unknown'>;

export type KnownTrouble = { name: HealthPart; reason: string; sinceTs: number };

export type HealthWatch = {
  /** Adds a check. Of several of one part the first that finds something counts. */
  add(name: HealthPart, check: HealthCheck): void;
  /** What was found last. */
  list(): KnownTrouble[];
  /** Why this does not work, and for how long that is known, ms; null: it works. */
  find(name: HealthPart): { reason: string; lastsMs: number } | null;
  close(): Promise<void>;
};

export type HealthWatchDeps = {
  log: Log;
  registry: Registry;
  clock: Clock;
  monotonicClock: MonotonicClock;
  /** Between two rounds; what goes wrong is known within this and a check's own time. */
  everyMs?: number;
};

type Found = KnownTrouble & { sinceMs: number };

/** Looks every few seconds at what a read does not show; says in log and metrics when something is wrong, and when it is over. */
export function startHealthWatch(deps: HealthWatchDeps): HealthWatch {
  const { log, registry, clock, monotonicClock, everyMs = 5_000 } = deps;
  const checks = new Map<HealthPart, HealthCheck[]>();
  const found = new Map<HealthPart, Found>();

  async function look(name: HealthPart, own: HealthCheck[]): Promise<void> {
    const results = await Promise.all(own.map((check) => check()));
    const trouble = results.find((result) => result !== null && result !== 'unknown');
    if (trouble) note(name, trouble);
    else if (!results.includes('unknown')) note(name, null);
  }

  function note(what: HealthPart, trouble: Trouble | null): void {
    const before = found.get(what);
    if (trouble === null) {
      if (before)
        log.info({ event: 'health.restored', what, reason: before.reason }, `${what}: well again.`);
      found.delete(what);
      return;
    }
    const { reason, text, details } = trouble;
    if (before?.reason === reason) return;
    log.warn({ event: 'health.degraded', what, reason, ...details }, text);
    const since = before ?? { sinceTs: clock(), sinceMs: monotonicClock() };
    found.set(what, { name: what, reason, sinceTs: since.sinceTs, sinceMs: since.sinceMs });
  }

  new Gauge({
    name: 'service_degraded',
    help: 'Whether something does not work, by what and why; absent: it works.',
    labelNames: ['what', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name, reason } of found.values()) this.set({ what: name, reason }, 1);
    },
  });
  const close = startEvery(everyMs, async () => {
    await Promise.all([...checks].map(([name, own]) => look(name, own)));
  });
  return {
    add: (name, check) => void checks.set(name, [...(checks.get(name) ?? []), check]),
    list: () => [...found.values()].map(({ name, reason, sinceTs }) => ({ name, reason, sinceTs })),
    find(name) {
      const known = found.get(name);
      return known ? { reason: known.reason, lastsMs: monotonicClock() - known.sinceMs } : null;
    },
    close,
  };
}

export const diskFullText =
  'The disk of the database is full: nothing of devices is stored or acknowledged until there is room.';

/** In words of their own: none of these is a database that is away. */
const writeTexts: Record<WriteTrouble['reason'], string> = {
  'standby-away':
    'Commits wait for a synchronous standby that is not there: nothing can be acknowledged until it is, or until synchronous_standby_names no longer asks for it.',
  'read-only':
    'The database is read-only: DATABASE_URL leads to a standby, or the role may only read.',
  locked: 'A session holds a lock on a table that every message needs; `blockers` names it.',
  slow: 'A commit has not returned for seconds, although the database answers.',
  'disk-full': diskFullText,
  refused: 'The database refuses to commit.',
};

/** Whether a commit is possible, as a check of the watch. */
export function checkWrites({ probe }: WriteProbe): HealthCheck {
  return async () => {
    const trouble = await probe();
    if (trouble === null || trouble === 'unknown') return trouble;
    const { reason, ...details } = trouble;
    return { reason, text: writeTexts[reason], details };
  };
}

/** How long commits may not return before a load balancer is told, ms. */
const unwritableMs = 5_000;

/**
 * Whether a process can acknowledge anything. A database that says that it is read-only is believed at once; messages
 * that wait while other commits return are no reason, as they may be those of one account.
 */
export function canWrite(health: Pick<HealthWatch, 'find'>): boolean {
  const trouble = health.find('database-writes');
  if (trouble === null || trouble.reason === 'messages-wait') return true;
  return trouble.reason !== 'read-only' && trouble.lastsMs < unwritableMs;
}
