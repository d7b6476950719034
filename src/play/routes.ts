import { once as onceEvent } from 'node:events';
import { Worker } from 'node:worker_threads';
import { doneBy } from '../audit/audit.ts';
import type { RuleOptions } from '../alarms/rules.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { Database } from '../db/database.ts';
import { hasEarlierProcess } from '../db/lease.ts';
import type { Sql } from '../db/sql.ts';
import { listAskedDevices, type SelectedDevice } from '../devices/select.ts';
import { estimateRows } from '../exports/exports.ts';
import { DomainError } from '../errors.ts';
import { type Keep, stream } from '../http/answer.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, invalid, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { insertPlaying } from '../jobs/jobs.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import { ndjsonType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import { type LimitsOf, lockUsage } from '../quotas/quotas.ts';
import { findPlayedFrom } from './backtest.ts';
import { reserveValues, settleValues } from './budget.ts';
import { type InstallCandidate, installRoute } from './install.ts';
import { keptRoutes } from './kept-routes.ts';
import { type ListListening, threadMiB } from './run.ts';
import {
  type AskedProfile,
  backtestExample,
  BacktestLine,
  BacktestRequest,
  longestMs,
  StartedBacktest,
} from './schema.ts';
import { insertBacktest, refuseMoreThan, type StoredBacktest } from './store.ts';
import type { BacktestBlock, BacktestWork } from './worker.ts';

type BacktestDeps = {
  db: Database;
  exports: Exports;
  limitsOf: LimitsOf;
  /** What a thread connects to. */
  database: BacktestWork['database'];
  rules: RuleOptions;
  /** The account's purposes and those given. Throws `not-found`, and `invalid-input` if they do not fit together. */
  readProfile: (accountId: number, asked: AskedProfile) => Promise<Purpose[]>;
  listListening: ListListening;
  install: InstallCandidate;
  /** There is a new backtest to play. */
  onStored: () => void;
};

const mostDevices = 10_000;
/** Threads of this process for answers, and how long an account waits for one. */
const mostThreads = 2;
const waitMs = 10_000;
/** A thread whose lines nobody reads for so long ends: others wait for it. */
const unreadMs = 30_000;

/** What a rule would have done: an addition to the specification. */
export function backtestRoutes(deps: BacktestDeps): Route[] {
  const threads = new FairBudget({ most: mostThreads, mostOfKey: () => 1 });
  return [
    defineRoute({
      name: 'runBacktest',
      scope: 'data:read',
      method: 'post',
      path: '/v2/backtests',
      summary: 'Play a profile on what devices measured',
      description:
        'What the candidate would have done in that range: firings, moves and alarms. With `against`, also how it ' +
        'differs. Nobody is notified. It goes on after the answer, as a job: `GET /v2/backtests/{backtestId}` shows how ' +
        'far it is, and what was found. With `Accept: application/x-ndjson` nothing is kept: the answer has the lines, ' +
        'one device after the other, while they are made. An account runs one such at a time.',
      tag: 'Backtests',
      auth: 'account',
      takesKey: true,
      body: BacktestRequest,
      example: backtestExample,
      response: StartedBacktest,
      streams: { types: [ndjsonType], messages: BacktestLine },
      errors: [403, 404, 409, 429, 503],
      answerBytes: 4_194_304,
      handler: async ({ account, body, request, once }) => {
        const prepared = await prepare(deps, { account, body, nowTs: request.now() });
        return request.accepts('application/json', ndjsonType) === ndjsonType
          ? stream(ndjsonType, await streamLines(deps, threads, { account, request, prepared }))
          : once<StartedBacktest>((keep) =>
              store(deps, { account, body, request, prepared }, keep),
            );
      },
    }),
    ...keptRoutes(deps),
    installRoute(deps),
  ];
}

/** A request that was checked. `values`: about how many measurements it reads. */
type Prepared = {
  asked: StoredBacktest;
  devices: SelectedDevice[];
  playedFromTs: number;
  values: number;
};

async function prepare(
  { db, readProfile }: Pick<BacktestDeps, 'db' | 'readProfile'>,
  { account, body, nowTs }: { account: Account; body: BacktestRequest; nowTs: WallMs },
): Promise<Prepared> {
  const { accountId } = account;
  const startTs = body.start;
  const endTs = Math.min(body.end ?? nowTs, nowTs);
  refuseRange(startTs, endTs);
  const candidate = await readProfile(accountId, body.candidate);
  const against =
    body.against === null || body.against === 'recorded'
      ? body.against
      : { purposes: await readProfile(accountId, body.against) };
  const filter = { uuids: body.devices, label: body.label, labels: labelsOf(account) };
  const devices = await listAskedDevices(db, accountId, filter, { labelPath: 'label' });
  if (devices.length > mostDevices)
    throw invalid([{ path: 'label', message: `expected at most ${mostDevices} devices` }]);
  const asked = { candidate, against, map: body.map, startTs, endTs };
  const playedFromTs = findPlayedFrom(asked);
  const values = await estimateValues(db, devices, playedFromTs, endTs);
  return { asked, devices, playedFromTs, values };
}

function refuseRange(startTs: number, endTs: number): void {
  if (endTs < startTs)
    throw invalid([{ path: 'start', message: 'expected a time before now and before end' }]);
  if (endTs - startTs > longestMs)
    throw invalid([{ path: 'start', message: 'expected a range of at most 366 days' }]);
}

function estimateValues(
  sql: Sql,
  devices: readonly SelectedDevice[],
  playedFromTs: number,
  endTs: number,
): Promise<number> {
  const text = `
    select from series s
      join measurement m on m.series_id = s.id
     where s.device_id = any($1::bigint[])
       and m.ts >= ms_to_timestamp($2) and m.ts < ms_to_timestamp($3::bigint + 1)`;
  return estimateRows(sql, { text, values: [devices.map(({ id }) => id), playedFromTs, endTs] });
}

type Asking = { account: Account; request: RequestInfo; prepared: Prepared };

/**
 * Stores a backtest, as a job. Throws `quota-exceeded`, `too-many-requests`, and `conflict` while a process of an
 * earlier version runs: that would take it for one of the jobs that it forgets.
 */
async function store(
  { db, limitsOf, onStored }: BacktestDeps,
  { account, body, request, prepared }: Asking & { body: BacktestRequest },
  keep: Keep<StartedBacktest> | null,
): Promise<StartedBacktest> {
  const { accountId } = account;
  const { asked, devices, playedFromTs, values } = prepared;
  const limits = limitsOf(accountId);
  const started = await db.transaction(async (tx) => {
    if (await hasEarlierProcess(tx)) throw earlierProcess();
    await lockUsage(tx, accountId);
    await refuseMoreThan(tx, accountId, limits.backtests);
    const limit = limits.backtestValuesPerDay;
    const reserved = await reserveValues(tx, { accountId, values, limit });
    const job = {
      accountId,
      keyId: account.key ? account.sessionId : null,
      action: { action: 'backtest' },
      labels: labelsOf(account),
      ...doneBy(account, request),
    };
    const backtestId = await insertPlaying(tx, job, devices.length);
    const { name = null } = body;
    const made = { jobUuid: backtestId, name, asked, playedFromTs, devices, reserved };
    await insertBacktest(tx, made);
    const started = { backtestId, timestamp: request.now() };
    await keep?.(tx, started);
    return started;
  });
  onStored();
  return started;
}

/** The lines of a backtest that is not kept. Throws `too-many-requests`. */
async function streamLines(
  deps: BacktestDeps,
  threads: FairBudget,
  { account, request, prepared }: Asking,
): Promise<AsyncIterable<string>> {
  const { db, rules, database } = deps;
  const { accountId } = account;
  const { signal } = request;
  const { asked, playedFromTs, values } = prepared;
  const ids = prepared.devices.map(({ id }) => id);
  const listening = await deps.listListening(ids, playedFromTs);
  const devices = prepared.devices.map((one) => ({ ...one, listening: listening.get(one.id) }));
  const refuse = tooMany;
  const leave = await threads.take(`${accountId}`, { withinMs: waitMs, signal, refuse });
  try {
    const reserved = await db.transaction(async (tx) => {
      await lockUsage(tx, accountId);
      const limit = deps.limitsOf(accountId).backtestValuesPerDay;
      return reserveValues(tx, { accountId, values, limit });
    });
    const onEnd = (readValues: number) => {
      leave();
      // What is not given back today counts until tomorrow.
      settleValues(db, reserved, readValues).catch(() => undefined);
    };
    const backtest = { ...asked, devices, rules };
    const blocks = readBlocks({ backtest, database, nowTs: request.now() }, signal, onEnd);
    return await deps.exports.run(accountId, signal, blocks).catch((error: unknown) => {
      // It may not have begun, and so ends nothing.
      onEnd(0);
      throw error;
    });
  } catch (error) {
    leave();
    throw error;
  }
}

const earlierProcess = () =>
  new DomainError(
    'conflict',
    'A process of an earlier version of the service is running, which does not know backtests: try again when it has ended.',
  );

const tooMany = () =>
  new DomainError('too-many-requests', 'Other backtests are running: try again later.', {
    retryAfterSeconds: waitMs / 1_000,
  });

/**
 * The lines of a backtest, in blocks, from a thread that ends with them, with `signal`, or when nobody reads them.
 * `onEnd` gets how many measurements were read.
 */
async function* readBlocks(
  work: BacktestWork,
  signal: AbortSignal,
  onEnd: (values: number) => void,
): AsyncGenerator<string> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: work,
    resourceLimits: { maxOldGenerationSizeMb: threadMiB },
  });
  let isOver = false;
  let values = 0;
  const end = () => {
    if (isOver) return;
    isOver = true;
    onEnd(values);
    void worker.terminate();
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    for (;;) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage('next');
      const [block] = (await onceEvent(worker, 'message', { signal })) as [BacktestBlock];
      if ('failed' in block)
        throw new DomainError('unavailable', 'The backtest could not be finished.', {
          cause: new Error(block.failed),
        });
      values = block.values;
      const unread = setTimeout(end, unreadMs);
      yield block.text;
      clearTimeout(unread);
      if (block.isLast) return;
      if (isOver)
        throw new DomainError('unavailable', 'The backtest ended: nobody read its lines.');
    }
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}
