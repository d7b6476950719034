import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { RuleOptions } from '../alarms/rules.ts';
import type { Purpose } from '../contract/purpose.ts';
import type { Sql } from '../db/sql.ts';
import { listAskedDevices, type SelectedDevice } from '../devices/select.ts';
import { refuseTooMuch } from '../exports/exports.ts';
import type { Listening } from '../engine/last-seen.ts';
import { DomainError } from '../errors.ts';
import { stream } from '../http/answer.ts';
import { defineRoute, invalid, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { ndjsonType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import { type Backtest, findPlayedFrom } from './backtest.ts';
import {
  type AskedProfile,
  backtestExample,
  BacktestLine,
  BacktestRequest,
  longestMs,
} from './schema.ts';
import type { BacktestBlock, BacktestWork } from './worker.ts';

type BacktestDeps = {
  db: Sql;
  exports: Exports;
  /** What a thread connects to. */
  database: BacktestWork['database'];
  rules: RuleOptions;
  /** The account's purposes and those given. Throws `not-found`, and `invalid-input` if they do not fit together. */
  readProfile: (accountId: number, asked: AskedProfile) => Promise<Purpose[]>;
  /** When each device's connector listened, by the number of the device; undefined: it is not known. */
  listListening: (
    deviceIds: readonly number[],
    sinceTs: number,
  ) => Promise<ReadonlyMap<number, Listening | undefined>>;
};

const mostValues = 50_000_000;
const mostDevices = 10_000;
/** Threads of this process, and how long an account waits for one. */
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
        'What the candidate would have done in that range: firings, moves and alarms, one device after the other, ' +
        'as lines that are sent while they are made. Nothing is stored, and nobody is notified. With `against`, ' +
        'also how it differs. An account runs one at a time; it counts as an export.',
      tag: 'Backtests',
      auth: 'account',
      body: BacktestRequest,
      example: backtestExample,
      response: BacktestLine,
      streams: { types: [ndjsonType], json: false },
      errors: [404, 429, 503],
      answerBytes: 4_194_304,
      handler: async ({ account, body, request }) => {
        const { accountId } = account;
        const labels = labelsOf(account);
        const nowTs = request.now();
        const startTs = body.start;
        const endTs = Math.min(body.end ?? nowTs, nowTs);
        refuseRange(startTs, endTs);
        const candidate = await deps.readProfile(accountId, body.candidate);
        const against =
          body.against === null || body.against === 'recorded'
            ? body.against
            : { purposes: await deps.readProfile(accountId, body.against) };
        const filter = { uuids: body.devices, label: body.label, labels };
        const devices = await listAskedDevices(deps.db, accountId, filter, { labelPath: 'label' });
        const playedFromTs = findPlayedFrom({ candidate, against, startTs });
        const passes = against === null || against === 'recorded' ? 1 : 2;
        await refuseTooManyOf(deps.db, devices, { playedFromTs, endTs, passes });
        const ids = devices.map(({ id }) => id);
        const listening = await deps.listListening(ids, playedFromTs);
        const backtest: Backtest = {
          candidate,
          against,
          startTs,
          endTs,
          devices: devices.map(({ id, uuid }) => ({ id, uuid, listening: listening.get(id) })),
          rules: deps.rules,
        };
        const leave = await threads.take(`${accountId}`, {
          withinMs: waitMs,
          signal: request.signal,
          refuse: tooMany,
        });
        const work = { backtest, database: deps.database, nowTs };
        const blocks = readBlocks(work, request.signal, leave);
        const run = deps.exports.run(accountId, request.signal, blocks);
        return stream(
          ndjsonType,
          await run.catch((error: unknown) => {
            // It may not have begun, and so ends nothing.
            leave();
            throw error;
          }),
        );
      },
    }),
  ];
}

function refuseRange(startTs: number, endTs: number): void {
  if (endTs < startTs)
    throw invalid([{ path: 'start', message: 'expected a time before now and before end' }]);
  if (endTs - startTs > longestMs)
    throw invalid([{ path: 'start', message: 'expected a range of at most 366 days' }]);
}

async function refuseTooManyOf(
  sql: Sql,
  devices: readonly SelectedDevice[],
  { playedFromTs, endTs, passes }: { playedFromTs: number; endTs: number; passes: number },
): Promise<void> {
  if (devices.length > mostDevices)
    throw invalid([{ path: 'label', message: `expected at most ${mostDevices} devices` }]);
  const text = `
    select from series s
      join measurement m on m.series_id = s.id
     where s.device_id = any($1::bigint[])
       and m.ts >= ms_to_timestamp($2) and m.ts < ms_to_timestamp($3::bigint + 1)`;
  const values = [devices.map(({ id }) => id), playedFromTs, endTs];
  const instead = 'a shorter range or fewer devices';
  await refuseTooMuch(
    sql,
    { text, values },
    { most: mostValues / passes, what: 'measurements', instead },
  );
}

const tooMany = () =>
  new DomainError('too-many-requests', 'Other backtests are running: try again later.', {
    retryAfterSeconds: waitMs / 1_000,
  });

/**
 * The lines of a backtest, in blocks, from a thread that ends with them, with `signal`, or when nobody reads them.
 * `onEnd` runs once.
 */
async function* readBlocks(
  work: BacktestWork,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<string> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: work,
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    onEnd();
    void worker.terminate();
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    for (;;) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage('next');
      const [block] = (await once(worker, 'message', { signal })) as [BacktestBlock];
      if ('failed' in block)
        throw new DomainError('unavailable', 'The backtest could not be finished.', {
          cause: new Error(block.failed),
        });
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
