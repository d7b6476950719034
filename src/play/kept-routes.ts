import type { Database } from '../db/database.ts';
import { asLines } from '../exports/exports.ts';
import { jsonText, stream } from '../http/answer.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { linkNext, MessageResponse } from '../http/schema.ts';
import { capitalized, ndjsonType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import { lockUsage } from '../quotas/quotas.ts';
import { settleValues } from './budget.ts';
import {
  BacktestList,
  BacktestParams,
  BacktestSummary,
  DevicesQuery,
  LinesQuery,
  listSchemas,
  PlayedDevices,
} from './schema.ts';
import {
  deleteBacktest,
  findBacktest,
  findJobId,
  type FoundBacktest,
  type LineKind,
  type LinePlace,
  listBacktests,
  listDevices,
  listLines,
  lists,
  lockJob,
  mostLines,
  noSuchBacktest,
  ownerOf,
  takeReserved,
} from './store.ts';

type KeptDeps = { db: Database; exports: Exports };

const read = {
  scope: 'data:read' as const,
  method: 'get' as const,
  tag: 'Backtests',
  auth: 'account' as const,
};
const path = '/v2/backtests/{backtestId}';
const nextLink = { Link: 'The next page, if there is one.' };

/** Reads backtests that are kept, and removes them. */
export function keptRoutes(deps: KeptDeps): Route[] {
  return [
    list(deps),
    one(deps),
    ...Object.keys(lists).map((kind) => lines(deps, kind as LineKind)),
    devices(deps),
    remove(deps),
  ];
}

function toView({ endedTs, name, pId, counts, ...backtest }: FoundBacktest) {
  const truncated = Object.values(lists).filter((list) => counts[list] > mostLines);
  return {
    ...backtest,
    ...(name === null ? {} : { name }),
    ...(endedTs === null ? {} : { endedTs }),
    ...(pId === null ? {} : { pId }),
    counts,
    truncated,
  };
}

function list({ db }: KeptDeps): Route {
  return defineRoute({
    ...read,
    name: 'listBacktests',
    path: '/v2/backtests',
    summary: 'List backtests',
    description: 'Newest first. A key that is restricted to labels sees only its own.',
    errors: [],
    response: BacktestList,
    answerBytes: 1_048_576,
    handler: async ({ account, request }) => {
      const found = await listBacktests(db, ownerOf(account));
      return { backtests: found.map(toView), timestamp: request.now() };
    },
  });
}

function one({ db }: KeptDeps): Route {
  return defineRoute({
    ...read,
    name: 'getBacktest',
    path,
    summary: 'Show a backtest',
    errors: [404],
    params: BacktestParams,
    response: BacktestSummary,
    handler: async ({ account, params, request }) => {
      const found = await findBacktest(db, ownerOf(account), params.backtestId);
      if (!found) throw noSuchBacktest();
      return { ...toView(found), timestamp: request.now() };
    },
  });
}

/** Lines of one statement of an answer that is streamed. */
const linesAtOnce = 5_000;

function lines({ db, exports }: KeptDeps, kind: LineKind): Route {
  const name = lists[kind];
  return defineRoute({
    ...read,
    name: `listBacktest${capitalized(name)}`,
    path: `${path}/${name}`,
    summary: `Get the ${name} of a backtest`,
    description:
      'Devices in the order of their registration, page by page. With `Accept: application/x-ndjson` all of them, one ' +
      'a line. While the backtest runs, those found so far.',
    errors: [404, 429],
    params: BacktestParams,
    query: LinesQuery,
    response: listSchemas[kind],
    responseHeaders: nextLink,
    streams: { types: [ndjsonType] },
    answerBytes: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const owner = ownerOf(account);
      const jobId = await findJobId(db, owner, params.backtestId);
      if (jobId === null) throw noSuchBacktest();
      const { limit, cursor = null, device = null } = query;
      const page = (after: LinePlace | null, most: number) =>
        listLines(db, owner, { jobId, kind, device, after, limit: most });
      if (request.accepts('application/json', ndjsonType) === ndjsonType) {
        const blocks = walk((after) => page(after, linesAtOnce), cursor);
        const { accountId } = account;
        const run = await exports.run(accountId, request.signal, blocks);
        return stream(
          ndjsonType,
          asLines(run, (found) => found.map((it) => `${it}\n`).join('')),
        );
      }
      const { lines: found, next } = await page(cursor, limit);
      if (next !== null) linkNext(request, next);
      return jsonText(`{"${name}":[${found.join()}],"timestamp":${request.now()}}`);
    },
  });
}

async function* walk(
  read: (after: LinePlace | null) => Promise<{ lines: string[]; next: LinePlace | null }>,
  from: LinePlace | null,
): AsyncGenerator<string[]> {
  let after = from;
  do {
    const page = await read(after);
    yield page.lines;
    after = page.next;
  } while (after !== null);
}

function devices({ db }: KeptDeps): Route {
  return defineRoute({
    ...read,
    name: 'listBacktestDevices',
    path: `${path}/devices`,
    summary: 'Get the devices of a backtest',
    description: 'In the order of their registration, with their counts.',
    errors: [404],
    params: BacktestParams,
    query: DevicesQuery,
    response: PlayedDevices,
    responseHeaders: nextLink,
    answerBytes: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const owner = ownerOf(account);
      const jobId = await findJobId(db, owner, params.backtestId);
      if (jobId === null) throw noSuchBacktest();
      const { limit, cursor: after = 0 } = query;
      const found = await listDevices(db, owner, { jobId, after, limit: limit + 1 });
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (found.length > limit && last) linkNext(request, last.device);
      return {
        devices: page.map(({ device: _number, ...device }) => device),
        timestamp: request.now(),
      };
    },
  });
}

function remove({ db }: KeptDeps): Route {
  return defineRoute({
    ...read,
    name: 'removeBacktest',
    scope: 'devices:write',
    method: 'delete',
    path,
    summary: 'Remove a backtest',
    description: 'Also while it runs: it is stopped, and what was found is removed.',
    errors: [404],
    params: BacktestParams,
    response: MessageResponse,
    handler: async ({ account, params, request }) => {
      const owner = ownerOf(account);
      await db.transaction(async (tx) => {
        await lockUsage(tx, account.accountId);
        const jobId = await lockJob(tx, owner, params.backtestId);
        if (jobId === null) throw noSuchBacktest();
        const reserved = await takeReserved(tx, jobId);
        if (reserved) await settleValues(tx, reserved, reserved.read);
        await deleteBacktest(tx, jobId);
      });
      return { timestamp: request.now(), message: 'The backtest is removed.' };
    },
  });
}
