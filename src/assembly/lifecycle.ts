import { Gauge, type Registry } from 'prom-client';
import type { Sql } from '../db/sql.ts';
import type { WriteProbe, WriteFailure } from '../db/write-probe.ts';
import type { Clock, MonotonicClock } from '../lib/clock-readings.ts';
import { startEvery } from '../lib/wait.ts';
import type { Log } from '../log/logger.ts';

/** A step of stopping, by its name in the log. `run` receives the time that it has, in ms. */
type Step = { name: string; run: (withinMs: number) => unknown };

/** What has been acquired so far. It is released in reverse order. */
export type Disposables = {
  add(name: string, release: (withinMs: number) => unknown): void;
  /** The number of acquired items. */
  count(): number;
  /**
   * Releases everything except the first `keep`, even if a release fails or hangs. Returns the names of those that did.
   */
  disposeAll(budget: StopBudget, keep?: number): Promise<string[]>;
};

/** The listeners for clients. They are closed first, and together, because HTTP passes connections to MQTT. */
export type Ingress = {
  /** `close` finishes work under way. */
  add(name: string, close: (withinMs: number) => Promise<void>): void;
  /** Closes all of them, even if one fails or hangs. Returns the names of those that did. */
  close(budget: StopBudget): Promise<string[]>;
};

/** Work under way gets most of the time; the rest is enough for the releases. */
const ingressPart = 0.6;
/** Five releases that hang still leave more than a tenth of the time to the ones after them. */
const releasePart = 1 / 3;

export function createIngress(log: Log): Ingress {
  const ingress: Step[] = [];
  return {
    add: (name, run) => void ingress.push({ name, run }),
    async close(budget) {
      const shareMs = budget.share(ingressPart);
      const closing = ingress.splice(0).map(async (entry) => runStep(entry, shareMs, log));
      return (await Promise.all(closing)).flat();
    },
  };
}

export function createDisposables(log: Log): Disposables {
  const held: Step[] = [];
  return {
    add: (name, run) => void held.push({ name, run }),
    count: () => held.length,
    async disposeAll(budget, keep = 0) {
      const unfinished: string[] = [];
      while (held.length > keep) {
        const release = held.pop();
        if (!release) break;
        const shareMs = budget.share(held.length > 0 ? releasePart : 1);
        unfinished.push(...(await runStep(release, shareMs, log)));
      }
      return unfinished;
    },
  };
}

/** Never rejects, because later steps must run. Returns the step's name if it failed or took too long. */
export async function runStep({ name, run }: Step, shareMs: number, log: Log): Promise<string[]> {
  try {
    await inTime(run, shareMs);
    return [];
  } catch (err) {
    if (err instanceof StepCut)
      log.warn(
        { event: 'stop.step-cut', step: name, shareMs: err.shareMs },
        'A shutdown step took longer than its share of time and was skipped.',
      );
    else log.error({ event: 'stop.step-failed', step: name, err }, 'A shutdown step failed.');
    return [name];
  }
}

/** The time that all steps of a stop have together. */
export type StopBudget = {
  /** This part (0 to 1) of the remaining time, in ms. */
  share(part: number): number;
};

export function createBudget(totalMs: number): StopBudget {
  // oxlint-disable-next-line no-restricted-globals -- the end of a process is timed by the machine
  const endMs = performance.now() + totalMs;
  // oxlint-disable-next-line no-restricted-globals -- the end of a process is timed by the machine
  return { share: (part) => Math.max(0, endMs - performance.now()) * part };
}

/** The part of its share that a step is given, so that it can notice in time that the share is over. */
const toldPart = 0.85;

/** A step took longer than its share and was abandoned. */
class StepCut extends Error {
  readonly shareMs: number;

  constructor(shareMs: number) {
    super(`A shutdown step took longer than its ${Math.round(shareMs)} ms.`);
    this.name = 'StepCut';
    this.shareMs = Math.round(shareMs);
  }
}

/**
 * Waits for a step for at most `shareMs`. Rejects with a StepCut if it takes longer, and abandons it. `step` receives
 * the time that it may wait for others.
 */
async function inTime(step: (withinMs: number) => unknown, shareMs: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StepCut(shareMs)), shareMs);
  try {
    await Promise.race([(async () => step(shareMs * toldPart))(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Longer than a healthy answer takes, shorter than anybody waits for a status. */
const patienceMs = 1_000;

/** Whether there is an answer in time. Never rejects. */
export async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  return (await answerOf(() => ask().then(() => true))) ?? false;
}

/** The answer, or null if there is none in time. Never rejects. */
export async function answerOf<T>(ask: () => Promise<T>): Promise<T | null> {
  const { promise: tooLate, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), patienceMs);
  const answered = ask().catch(() => null);
  return Promise.race([answered, tooLate]).finally(() => clearTimeout(timer));
}

export const databaseAnswers = (db: Sql) => answers(() => db.query('select 1'));

/** A part that does not work, as `GET /v2/status` names it. */
type HealthPart = 'database-writes' | 'sessions';

/** The reason, a code from docs/operations.md, with text and details for the log. */
type Failure = { reason: string; text: string; details?: Record<string, unknown> };

/** Null: all is well; `unknown`: the part that would know does not answer. Never rejects. */
export type HealthCheck = () => Promise<Failure | null | 'unknown'>;

type KnownFailure = { name: HealthPart; reason: string; sinceTs: number };

export type HealthWatch = {
  /** Adds a check. If a part has several, the first failure counts. */
  add(name: HealthPart, check: HealthCheck): void;
  /** The failures found last. */
  list(): KnownFailure[];
  /** Why this does not work, and for how long that has been known, ms; null: it works. */
  find(name: HealthPart): { reason: string; lastsMs: number } | null;
  close(): Promise<void>;
};

type HealthWatchDeps = {
  log: Log;
  registry: Registry;
  clock: Clock;
  monotonicClock: MonotonicClock;
  /** Time between two rounds. A failure is known within this time plus the check's own. */
  everyMs?: number;
};

type Found = KnownFailure & { sinceMs: number };

/**
 * Checks every few seconds what a read does not reveal. Reports failures, and their end, in the log and the metrics.
 */
export function startHealthWatch(deps: HealthWatchDeps): HealthWatch {
  const { log, registry, clock, monotonicClock, everyMs = 5_000 } = deps;
  const checks = new Map<HealthPart, HealthCheck[]>();
  const found = new Map<HealthPart, Found>();

  async function look(name: HealthPart, own: HealthCheck[]): Promise<void> {
    const results = await Promise.all(own.map((check) => check()));
    const failure = results.find((result) => result !== null && result !== 'unknown');
    if (failure) note(name, failure);
    else if (!results.includes('unknown')) note(name, null);
  }

  function note(what: HealthPart, failure: Failure | null): void {
    const before = found.get(what);
    if (failure === null) {
      if (before)
        log.info(
          { event: 'health.restored', what, reason: before.reason },
          `${what}: working again.`,
        );
      found.delete(what);
      return;
    }
    const { reason, text, details } = failure;
    if (before?.reason === reason) return;
    log.warn({ event: 'health.degraded', what, reason, ...details }, text);
    const since = before ?? { sinceTs: clock(), sinceMs: monotonicClock() };
    found.set(what, { name: what, reason, sinceTs: since.sinceTs, sinceMs: since.sinceMs });
  }

  new Gauge({
    name: 'service_degraded',
    help: 'What is not working, and why; absent if all is well.',
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
  "The database's disk is full: nothing from devices is stored or acknowledged until there is room.";

/** Separate texts, because none of these is a database that is away. */
const writeTexts: Record<WriteFailure['reason'], string> = {
  'standby-away':
    'Commits wait for a synchronous standby that is not there: nothing can be acknowledged ' +
    'until it is back or synchronous_standby_names no longer requires it.',
  'read-only':
    'The database is read-only: DATABASE_URL leads to a standby, or the role may only read.',
  locked:
    'A session holds a lock on a table that every message needs; `blockers` names the session.',
  slow: 'A commit has been pending for seconds, although the database answers.',
  'disk-full': diskFullText,
  refused: 'The database refuses to commit.',
};

/** A health check that tries whether a commit is possible. */
export function checkWrites({ probe }: WriteProbe): HealthCheck {
  return async () => {
    const failure = await probe();
    if (failure === null || failure === 'unknown') return failure;
    const { reason, ...details } = failure;
    return { reason, text: writeTexts[reason], details };
  };
}

/** How long commits may hang before a load balancer learns of it, ms. */
const unwritableMs = 5_000;

/**
 * Whether this process can acknowledge anything. A database that reports that it is read-only is believed at once.
 * Messages that wait while other commits return do not count, because they may belong to one account.
 */
export function canWrite(health: Pick<HealthWatch, 'find'>): boolean {
  const failure = health.find('database-writes');
  if (failure === null || failure.reason === 'messages-wait') return true;
  return failure.reason !== 'read-only' && failure.lastsMs < unwritableMs;
}

/** Whether this process may receive work: it has started, is not stopping, and has what it needs. */
export type Readiness = {
  /**
   * Adds a condition, with the name that `/readyz` reports for it. `check` must answer within about a second, and never
   * throw.
   */
  add(name: string, check: () => boolean | Promise<boolean>): void;
  /** All listeners are open. */
  started(): void;
  /** From now on never ready again. */
  stopping(): void;
  isStopping(): boolean;
  /** The names of unmet conditions, in the order in which they were added; empty when ready. */
  listUnready(): Promise<string[]>;
};

type Stage = 'starting' | 'serving' | 'shutting down';

export function createReadiness(): Readiness {
  const checks: { name: string; check: () => boolean | Promise<boolean> }[] = [];
  let stage: Stage = 'starting';
  return {
    add: (name, check) => void checks.push({ name, check }),
    started() {
      if (stage === 'starting') stage = 'serving';
    },
    stopping: () => void (stage = 'shutting down'),
    isStopping: () => stage === 'shutting down',
    async listUnready() {
      if (stage !== 'serving') return [stage];
      const held = await Promise.all(checks.map(async ({ check }) => check()));
      return checks.filter((_, index) => !held[index]).map(({ name }) => name);
    },
  };
}
