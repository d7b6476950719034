import { deflateRawSync } from 'node:zlib';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { saveProgress } from '../jobs/jobs.ts';
import { monotonicClock } from '../lib/clock.ts';
import { pause } from '../lib/wait.ts';
import { type Backtest, runBacktest } from './backtest.ts';
import { storedHistory } from './history.ts';
import { type LineKind, lists, mostLines, othersWait } from './store.ts';

/*
 * Plays a backtest, in a thread, and keeps what is found. The transaction that keeps lines looks whether the backtest
 * is still this run's, and stores the progress. So if the process is killed, or somebody stops the job, nothing is kept
 * twice, and nothing afterwards.
 */

/** What a run does. `backtest` has the devices that are left; `kept`: lines of each kind that are stored. */
export type KeptWork = {
  run: string;
  jobId: number;
  accountId: number;
  backtest: Backtest;
  kept: Partial<Record<LineKind, number>>;
  /** It failed: each device is kept by itself, so that the one to blame is found. */
  isCareful: boolean;
  nowTs: number;
};

/** `rested`: others wait, and it is taken up again. `lost`: it was stopped or removed, or another run has it. */
export type KeptEnd = 'done' | 'rested' | 'lost';

/** Lines of one row, and about as many characters. */
const linesOfBlock = 500;
const lengthOfBlock = 131_072;
/** How much waits to be kept, in characters, and for how long, ms. */
const mostWaiting = 1_048_576;
const keepEveryMs = 1_000;
/** After so long it lets others go first. */
const turnMs = 15_000;
/** It pauses for as long as it worked, but no longer than this, so that devices' messages get to the database. */
const longestRestMs = 100;

/** Plays what is left of a backtest. Rejects if that fails; what was kept until then stays. */
export async function keepBacktest(db: Database, work: KeptWork): Promise<KeptEnd> {
  const { backtest, nowTs, isCareful, accountId } = work;
  const read = { values: 0 };
  const keeper = new Keeper(db, work, read);
  const beganMs = monotonicClock();
  try {
    await keeper.clear();
    let workedMs = beganMs;
    let before = 0;
    for await (const line of runBacktest(storedHistory(db), backtest, nowTs, read)) {
      if (line === null) {
        if (keeper.isDue) await keeper.save(read.values - before);
        await pause(Math.min(longestRestMs, monotonicClock() - workedMs), goingOn);
        workedMs = monotonicClock();
      } else if (line.kind === 'device') {
        keeper.endDevice(line as unknown as DeviceLine);
        before = read.values;
        if (!keeper.isDue && !isCareful) continue;
        await keeper.save(0);
        if (monotonicClock() - beganMs > turnMs && (await othersWait(db, accountId)))
          return 'rested';
      } else if (Object.hasOwn(lists, line.kind)) {
        keeper.add(line.kind as LineKind, line);
        if (keeper.isFull) await keeper.save(read.values - before);
      }
    }
    await keeper.end();
    return 'done';
  } catch (error) {
    if (error instanceof Lost) return 'lost';
    throw error;
  }
}

const goingOn = new AbortController().signal;

class Lost extends Error {}

type DeviceLine = Record<(typeof counts)[number], number> & { caveats: string[] };
const counts = ['values', 'firings', 'moves', 'alarms', 'differences'] as const;

type Block = { deviceId: number; kind: LineKind; nth: number; count: number; body: Buffer };

/** Collects lines of one device after the other, and keeps them now and then. */
class Keeper {
  readonly #db: Database;
  readonly #work: KeptWork;
  /** How many measurements this run has read. */
  readonly #read: { readonly values: number };
  /** Lines of the device that is played, which are no block yet. */
  readonly #open = new Map<LineKind, { nth: number; lines: string[]; length: number }>();
  /** How many devices were played. */
  #ended = 0;
  #devices: (DeviceLine & { deviceId: number; isDone: boolean })[] = [];
  #blocks: Block[] = [];
  #waiting = 0;
  #savedRead = 0;
  #savedMs = monotonicClock();

  constructor(db: Database, work: KeptWork, read: { readonly values: number }) {
    this.#db = db;
    this.#work = work;
    this.#read = read;
  }

  get isFull(): boolean {
    return this.#waiting >= mostWaiting;
  }

  get isDue(): boolean {
    return this.isFull || monotonicClock() - this.#savedMs >= keepEveryMs;
  }

  get #deviceId(): number | undefined {
    return this.#work.backtest.devices[this.#ended]?.id;
  }

  /** Deletes what an earlier run kept of devices that it did not finish. */
  clear(): Promise<void> {
    return this.#within(async (tx, jobId) => {
      await tx.query(
        `with cleared as (
           delete from backtest_lines l using backtest_device d
            where l.backtest_id = $1 and d.backtest_id = $1 and d.device_id = l.device_id and not d.is_done
           returning octet_length(l.body) as bytes
         )
         update backtest set bytes = bytes - (select coalesce(sum(bytes), 0) from cleared)
          where job_id = $1 and exists (select from cleared)`,
        [jobId],
      );
    });
  }

  add(kind: LineKind, line: object): void {
    const { kept } = this.#work;
    const count = kept[kind] ?? 0;
    if (count >= mostLines) return;
    kept[kind] = count + 1;
    const open = this.#open.get(kind) ?? { nth: 0, lines: [], length: 0 };
    this.#open.set(kind, open);
    const text = JSON.stringify(line);
    open.lines.push(text);
    open.length += text.length;
    this.#waiting += text.length;
    if (open.lines.length >= linesOfBlock || open.length >= lengthOfBlock) this.#close(kind);
  }

  #close(kind: LineKind): void {
    const open = this.#open.get(kind);
    const deviceId = this.#deviceId;
    if (!open || open.lines.length === 0 || deviceId === undefined) return;
    const { nth, lines } = open;
    const body = deflateRawSync(`${lines.join('\n')}\n`);
    this.#blocks.push({ deviceId, kind, nth, count: lines.length, body });
    this.#open.set(kind, { nth: nth + 1, lines: [], length: 0 });
  }

  endDevice(line: DeviceLine): void {
    for (const kind of this.#open.keys()) this.#close(kind);
    this.#open.clear();
    const deviceId = this.#deviceId;
    if (deviceId !== undefined) this.#devices.push({ ...line, deviceId, isDone: true });
    this.#ended += 1;
  }

  /** Keeps what there is. `begun`: how many measurements of the device that is played were read. */
  async save(begun: number): Promise<void> {
    const devices = [...this.#devices];
    const deviceId = this.#deviceId;
    const nothing = { firings: 0, moves: 0, alarms: 0, differences: 0, caveats: [] };
    if (deviceId !== undefined && begun > 0)
      devices.push({ ...nothing, deviceId, isDone: false, values: begun });
    const read = this.#read.values;
    await this.#within(async (tx, jobId) => {
      await insertBlocks(tx, this.#work, this.#blocks);
      await saveDevices(tx, jobId, devices);
      const count = this.#devices.length;
      await saveProgress(tx, jobId, { count, failed: [] });
      const bytes = this.#blocks.reduce((sum, { body }) => sum + body.length, 0);
      await tx.query(
        `update backtest
            set bytes = bytes + $2, read = read + $3, failures = case when $4 then 0 else failures end
          where job_id = $1`,
        [jobId, bytes, read - this.#savedRead, count > 0],
      );
    });
    this.#savedRead = read;
    this.#devices = [];
    this.#blocks = [];
    this.#waiting = 0;
    this.#savedMs = monotonicClock();
  }

  /** Keeps the rest. The job is done, also for devices that were removed meanwhile. */
  async end(): Promise<void> {
    await this.save(0);
    await this.#within((tx, jobId, left) => saveProgress(tx, jobId, { count: left, failed: [] }));
  }

  /** Throws `Lost` unless the backtest is this run's. `left`: devices of the job that are not done. */
  #within(work: (tx: Sql, jobId: number, left: number) => Promise<void>): Promise<void> {
    const { jobId, run } = this.#work;
    return this.#db.transaction(async (tx) => {
      const { rows } = await tx.query<{ left: number; isDone: boolean }>(
        `select j.total - j.done as left, j.state = 'done' as "isDone"
           from job j
           join backtest b on b.job_id = j.id
           join account a on a.id = j.account_id
          where j.id = $1 and b.run = $2 and j.state in ('playing', 'done')
            and a.disabled_at is null and a.removed_at is null
            for no key update of j`,
        [jobId, run],
      );
      const [row] = rows;
      if (!row) throw new Lost();
      // With the last device this run has kept all that there is.
      if (!row.isDone) await work(tx, jobId, row.left);
    });
  }
}

async function insertBlocks(
  tx: Sql,
  { jobId, accountId }: KeptWork,
  blocks: readonly Block[],
): Promise<void> {
  if (blocks.length === 0) return;
  await tx.query(
    `insert into backtest_lines (backtest_id, account_id, device_id, kind, nth, count, body)
     select $1, $2, * from unnest($3::bigint[], $4::text[], $5::integer[], $6::integer[], $7::bytea[])`,
    [
      jobId,
      accountId,
      blocks.map(({ deviceId }) => deviceId),
      blocks.map(({ kind }) => kind),
      blocks.map(({ nth }) => nth),
      blocks.map(({ count }) => count),
      blocks.map(({ body }) => body),
    ],
  );
}

async function saveDevices(
  tx: Sql,
  jobId: number,
  devices: readonly (DeviceLine & { deviceId: number; isDone: boolean })[],
): Promise<void> {
  if (devices.length === 0) return;
  await tx.query(
    `update backtest_device d
        set is_done = n."isDone", measured = n.values, firings = n.firings, moves = n.moves,
            alarms = n.alarms, differences = n.differences, caveats = n.caveats
       from json_to_recordset($2) as n ("deviceId" bigint, "isDone" boolean, values bigint,
              firings bigint, moves bigint, alarms bigint, differences bigint, caveats text[])
      where d.backtest_id = $1 and d.device_id = n."deviceId"`,
    [jobId, JSON.stringify(devices)],
  );
}
