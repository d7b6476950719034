import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createExports } from '../../src/quotas/exports.ts';
import { newDevice, startHistory, type HistoryApp } from '../events/app.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

const never = new AbortController().signal;

/** Pages that come when the test releases them; records what was read. */
function source(pages: number) {
  const reads: PromiseWithResolvers<void>[] = [];
  let isEnded = false;
  async function* read() {
    try {
      for (let page = 1; page <= pages; page += 1) {
        const gate = Promise.withResolvers<void>();
        reads.push(gate);
        await gate.promise;
        yield page;
      }
    } finally {
      isEnded = true;
    }
  }
  return { pages: read(), reads, isEnded: () => isEnded };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const start = (options: Partial<Parameters<typeof createExports>[0]> = {}) =>
  createExports({ limitOf: () => 2, monotonicClock, ...options });

/** Exports that still wait are refused when their time is over, after the test. */
const leave = (runs: Promise<unknown>[]) => {
  for (const run of runs) run.catch(() => undefined);
};

async function readAll<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const page of pages) all.push(page);
  return all;
}

describe('exports', () => {
  it('of clients that have left before they could start take no slot', async () => {
    const exports = start();
    const gone = AbortSignal.abort();
    for (const { pages } of [1, 1].map(source)) {
      const run = exports.run(1, gone, pages);
      await expect(run).rejects.toMatchObject({ code: 'too-many-requests' });
    }
    const { pages, reads } = source(1);
    const run = exports.run(1, never, pages);
    await settle();
    expect(reads).toHaveLength(1);
    leave([run]);
  });

  it('end when their client has left, even if nothing is written of what they read', async () => {
    const exports = start();
    const client = new AbortController();
    const { pages, reads, isEnded } = source(3);
    const running = exports.run(1, client.signal, pages);
    await settle();
    reads[0]?.resolve();
    const all = readAll(await running);
    await settle();
    expect(reads).toHaveLength(2);
    client.abort();
    reads[1]?.resolve();
    expect(await all).toEqual([1, 2]);
    expect(reads).toHaveLength(2);
    expect(isEnded()).toBe(true);
  });

  it('of one account run two at a time, the others in order once one has ended', async () => {
    const exports = start();
    const sources = [1, 1, 1, 1].map(source);
    const runs = sources.map(({ pages }) => exports.run(1, never, pages));
    await settle();
    expect(sources.map(({ reads }) => reads.length)).toEqual([1, 1, 0, 0]);
    // Read, but not to its end: a slow reader.
    sources[0]?.reads[0]?.resolve();
    const first = await runs[0];
    await settle();
    expect(sources.map(({ reads }) => reads.length)).toEqual([1, 1, 0, 0]);
    expect(first && (await readAll(first))).toEqual([1]);
    await settle();
    expect(sources.map(({ reads }) => reads.length)).toEqual([1, 1, 1, 0]);
    leave(runs);
  });

  it('of many accounts read four pages at once, with fair shares; slow readers delay nobody', async () => {
    const exports = start({ limitOf: () => 10, parallel: 4 });
    const greedy = Array.from({ length: 6 }, () => source(1));
    const [other, third] = [source(1), source(1)];
    const runs = greedy.map(({ pages }) => exports.run(1, never, pages));
    runs.push(exports.run(2, never, other.pages), exports.run(3, never, third.pages));
    const begun = () => [...greedy, other, third].map(({ reads }) => reads.length);
    await settle();
    expect(begun()).toEqual([1, 1, 1, 1, 0, 0, 0, 0]);
    // Nobody has read these pages, and yet the next ones begin.
    greedy[0]?.reads[0]?.resolve();
    greedy[1]?.reads[0]?.resolve();
    greedy[2]?.reads[0]?.resolve();
    await Promise.all(runs.slice(0, 3));
    await settle();
    expect(begun()).toEqual([1, 1, 1, 1, 1, 0, 1, 1]);
    leave(runs);
  });

  it('are refused when no slot becomes free in time', async () => {
    const exports = start({ limitOf: () => 1, waitMs: 20 });
    const held = source(1);
    const running = exports.run(1, never, held.pages);
    const refused = await exports.run(1, never, source(1).pages).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'too-many-requests',
      rate: { quota: 'exports', limit: 1 },
    });
    // Nor does another account get a slot while others read all pages.
    const narrow = start({ parallel: 1, waitMs: 20 });
    const first = source(1);
    const other = narrow.run(1, never, first.pages);
    await expect(narrow.run(2, never, source(1).pages)).rejects.toMatchObject({
      code: 'too-many-requests',
    });
    first.reads[0]?.resolve();
    held.reads[0]?.resolve();
    expect(await readAll(await other)).toEqual([1]);
    expect(await readAll(await running)).toEqual([1]);
    expect(await readAll(await narrow.run(2, never, empty()))).toEqual([]);
  });

  it('end with an error, and when their reader leaves', async () => {
    const exports = start({ limitOf: () => 1 });
    // oxlint-disable-next-line require-yield
    const broken = (async function* () {
      throw new Error('broken');
    })();
    await expect(exports.run(1, never, broken)).rejects.toThrow('broken');
    const gone = new AbortController();
    const held = source(2);
    const running = exports.run(1, gone.signal, held.pages);
    await settle();
    held.reads[0]?.resolve();
    await running;
    const waiting = new AbortController();
    const waits = exports.run(1, waiting.signal, empty());
    waiting.abort();
    await expect(waits).rejects.toMatchObject({ code: 'too-many-requests' });
    gone.abort();
    expect(await readAll(await exports.run(1, never, empty()))).toEqual([]);
    // Leaving the loop early ends its query.
    const left = source(2);
    const halfway = exports.run(1, never, left.pages);
    await settle();
    left.reads[0]?.resolve();
    for await (const page of await halfway) {
      expect(page).toBe(1);
      break;
    }
    expect(left.isEnded()).toBe(true);
    expect(await readAll(await exports.run(1, never, empty()))).toEqual([]);
  });

  async function* empty(): AsyncGenerator<number> {}
});

describe.each(databaseKinds)('exports over HTTP, on %s', (kind) => {
  let database: TestDatabase;
  let history: HistoryApp;
  beforeAll(async () => {
    database = await testDatabase(kind);
    history = await startHistory(database.db, { exports: { limitOf: () => 1, waitMs: 1_000 } });
  });
  afterAll(async () => {
    await history?.close();
    await database?.drop();
  });

  it('get 429 with the limit while others are under way, and 200 after them', async () => {
    const [own, other] = [await newDevice(database.db), await newDevice(database.db)];
    const get = ({ uuid, accountId }: typeof own, query: string) =>
      history.get(`/v2/measurements/${uuid}?${query}`, accountId);
    const held = source(2);
    const running = history.exports.run(own.accountId, never, held.pages);
    await settle();
    const refused = await get(own, 'bucket=1h');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.headers.get('ratelimit-policy')).toBe('"exports";q=1;w=1');
    expect(refused.headers.get('ratelimit')).toBe('"exports";r=0;t=1');
    // Single pages do not count, and other accounts have their own limit.
    expect([(await get(own, '')).status, (await get(other, 'bucket=1h')).status]).toEqual([
      200, 200,
    ]);
    for (const gate of held.reads) gate.resolve();
    const pages = await running;
    const read = readAll(pages);
    await expect.poll(() => held.reads.length).toBe(2);
    held.reads[1]?.resolve();
    await read;
    for (let n = 0; n < 3; n += 1) expect((await get(own, 'bucket=1h')).status).toBe(200);
  });
});
