import type { Sense } from '../contract/configuration.ts';
import type { Rejection } from '../contract/uplink.ts';
import type { Database, Transaction } from '../db/database.ts';
import { kindOf, stateOf, states } from '../db/errors.ts';
import { ingestLock } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Body } from '../http/request.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import { backoffMs, pause } from '../lib/wait.ts';
import type { FairBudget } from '../lib/fair-budget.ts';
import {
  createLineReader,
  type ImportCandidate,
  type Line,
  type LineReader,
  Lines,
} from './reader.ts';
import type { Clock, MonotonicClock, WallMs } from '../lib/clock-readings.ts';

/** A line that was not stored, and why. */
type LineError = { line: number; reason: string };

const maxErrors = 100;

/** What became of the lines of an import. */
export class Receipt {
  stored = 0;
  /** Were there already. */
  repeated = 0;
  rejected = 0;
  /** The first ones that were found, in the order of their lines. */
  readonly errors: LineError[] = [];

  reject(line: number, reason: string): void {
    this.rejected += 1;
    if (this.errors.length < maxErrors) this.errors.push({ line, reason });
  }

  /** In numbers, for people. */
  describe(): string {
    return (
      `${this.stored} lines are stored, ${this.repeated} were already there, ${this.rejected} ` +
      'are rejected'
    );
  }
}

/** More devices than this are not held by one transaction. */
const maxDevices = 1_000;

/** Candidates for one transaction. */
class CandidateBatch {
  #candidates: ImportCandidate[] = [];
  #uuids = new Set<string>();

  get size(): number {
    return this.#candidates.length;
  }

  add(candidate: ImportCandidate): void {
    this.#candidates.push(candidate);
    this.#uuids.add(candidate.uuid);
  }

  isFull(rows: number): boolean {
    return this.#candidates.length >= rows || this.#uuids.size >= maxDevices;
  }

  /** Gives all of them, and starts an empty batch. */
  take(): ImportCandidate[] {
    const taken = this.#candidates;
    this.#candidates = [];
    this.#uuids = new Set();
    return taken;
  }
}

const fewest = 2_000;
const most = 5_000;
/** A transaction that takes this long makes the next ones smaller: ingest may wait for it. */
const longestMs = 40;

/** How many rows one transaction has: as many as the database stores in a short time. */
class Pace {
  #rows = fewest;

  get rows(): number {
    return this.#rows;
  }

  took(ms: number, rows: number): void {
    if (ms > longestMs) this.#rows = Math.max(fewest, Math.ceil(this.#rows / 2));
    else if (ms < longestMs / 2 && rows >= this.#rows)
      this.#rows = Math.min(most, Math.ceil(this.#rows * 1.5));
  }
}

type RunImportDeps = StoreImportDeps &
  Pick<ImportPorts, 'check' | 'checkRoom' | 'othersWait'> & {
    /** Rejects once whoever imports may not any more. */
    recheck(): Promise<unknown>;
    /** Pieces of imports that are worked on at once, of all accounts. */
    turns: FairBudget;
  };

/** Lines are read at a stretch until they have cost so much: about 2 ms, and 5 on a machine that is busy. */
const costAtOnce = 600;
/** A line that is wrong costs more than one that is right, and a long one more than a short one. */
const rejectedCost = 4;
const charactersOfCost = 100;

/** What was read is stored after so long, however little it is. */
const waitsAtMostMs = 1_000;

/** So often it is looked whether there is room, and whether whoever imports still may. */
const lookEveryMs = 1_000;

/**
 * Stores what the lines of a body say, batch by batch, each in a transaction of its own; `receipt` says at each
 * moment what is stored. Reads no further than it has stored. What is thrown leaves whole batches.
 */
export class ImportRun {
  readonly receipt = new Receipt();
  readonly #owner: Owner;
  readonly #signal: AbortSignal;
  readonly #deps: RunImportDeps;
  readonly #devices: Devices;
  readonly #batch = new CandidateBatch();
  readonly #pace = new Pace();
  /** Whether the batch before was all new. */
  #areNew = true;
  #cost = 0;
  #lookedMs = -Infinity;
  #storedMs: number;

  constructor(owner: Owner, signal: AbortSignal, deps: RunImportDeps) {
    this.#owner = owner;
    this.#signal = signal;
    this.#deps = deps;
    this.#storedMs = deps.monotonicClock();
    this.#devices = createDevices(deps.db, owner, deps.monotonicClock);
  }

  async run({ type, chunks }: Body): Promise<void> {
    const lines = new Lines();
    const reader = createLineReader(type);
    for await (const chunk of chunks) {
      await this.#inTurn(async () => {
        await this.#readLines(lines.take(chunk), reader);
        // What comes slowly does not wait here for a batch to be full.
        if (this.#deps.monotonicClock() - this.#storedMs > waitsAtMostMs) await this.#store();
      });
    }
    await this.#inTurn(async () => {
      await this.#readLines(lines.end(), reader);
      reader.end();
      await this.#store();
    });
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const refuse = () => new DomainError('unavailable', 'The service is stopping.');
    const wait = { signal: this.#signal, refuse };
    const release = await this.#deps.turns.take(`${this.#owner.accountId}`, wait);
    await work().finally(release);
  }

  async #readLines(lines: Iterable<Line>, reader: LineReader): Promise<void> {
    for (const line of lines) {
      this.#readLine(line, reader);
      if (this.#batch.isFull(this.#pace.rows)) await this.#store();
      if (this.#cost < costAtOnce) continue;
      this.#cost = 0;
      await yieldToEventLoop();
    }
  }

  #readLine(line: Line, reader: LineReader): void {
    const read = reader.read(line);
    this.#cost += 1 + (line.text?.length ?? 0) / charactersOfCost;
    if (read === null) return;
    if (typeof read === 'string') {
      this.#cost += rejectedCost;
      this.receipt.reject(line.number, read);
    } else this.#batch.add(read);
  }

  async #store(): Promise<void> {
    this.#storedMs = this.#deps.monotonicClock();
    const candidates = this.#batch.take();
    if (candidates.length === 0) return;
    await this.#lookAgain();
    await this.#devices.load(candidates);
    const rows = await this.#check(candidates);
    if (rows.length === 0) return;
    const startedMs = this.#deps.monotonicClock();
    const result = await storeImported(rows, this.#owner, this.#areNew, this.#signal, this.#deps);
    const tookMs = this.#deps.monotonicClock() - startedMs;
    this.receipt.stored += result.added;
    this.receipt.repeated += result.repeated;
    for (const { row, reason } of result.rejected) this.receipt.reject(row.line, reason);
    for (const { line, uuid } of result.gone) {
      this.#devices.forget(uuid);
      this.receipt.reject(line, noDevice);
    }
    this.#areNew = result.repeated === 0;
    this.#pace.took(tookMs, rows.length);
    // Half of the database's time is theirs.
    if (this.#deps.othersWait(this.#owner.accountId)) await pause(tookMs, this.#signal);
  }

  async #lookAgain(): Promise<void> {
    const monotonicMs = this.#deps.monotonicClock();
    if (monotonicMs - this.#lookedMs < lookEveryMs) return;
    this.#lookedMs = monotonicMs;
    await this.#deps.recheck();
    await this.#deps.checkRoom(this.#owner.accountId);
  }

  /** Those of the account's devices that may be stored. */
  async #check(candidates: ImportCandidate[]): Promise<ImportRow[]> {
    const arrivedTs = this.#deps.clock();
    const rows: ImportRow[] = [];
    for (const [n, candidate] of candidates.entries()) {
      if (n % costAtOnce === costAtOnce - 1) await yieldToEventLoop();
      const device = this.#devices.get(candidate.uuid);
      if (!device) {
        this.receipt.reject(candidate.line, noDevice);
        continue;
      }
      const row = { ...candidate, deviceId: device.deviceId };
      const wrong = this.#deps.check(row, device.senses, arrivedTs);
      if (wrong) this.receipt.reject(candidate.line, `${wrong.reason}: ${wrong.message}`);
      else rows.push(row);
    }
    return rows;
  }
}

const noDevice = 'not-found: the account has no such device';

/** A device of the account with those of its senses that were asked for; an absent one is not configured. */
type ImportDevice = { deviceId: number; senses: Map<string, Sense> };

type Devices = {
  /** Looks up what the batch needs and is not known. */
  load(batch: readonly ImportCandidate[]): Promise<void>;
  /** Null: the account has no such device, or the key does not reach it. */
  get(uuid: string): ImportDevice | null;
  /** It was removed meanwhile. */
  forget(uuid: string): void;
};

/** A change of a configuration is known to an import within this time. */
const freshMs = 5_000;
/** Devices and senses that one import remembers: about 10 MB. */
const maxRemembered = 50_000;

type Known = ImportDevice & { asked: Set<string> };

/** Remembers the devices and senses of one import for a while: most lines are of those before them. */
function createDevices(db: Sql, owner: Owner, monotonicClock: MonotonicClock): Devices {
  const known = new Map<string, Known | null>();
  let size = 0;
  let sinceMs = monotonicClock();

  async function loadDevices(uuids: Set<string>): Promise<void> {
    const unknown = [...uuids].filter((uuid) => !known.has(uuid));
    if (unknown.length === 0) return;
    for (const uuid of unknown) known.set(uuid, null);
    size += unknown.length;
    for (const { uuid, deviceId } of await listOwnDevices(db, owner, unknown))
      known.set(uuid, { deviceId, senses: new Map(), asked: new Set() });
  }

  async function loadSenses(batch: readonly ImportCandidate[]): Promise<void> {
    const sIds = new Set<string>();
    const devices = new Map<number, Known>();
    for (const { uuid, sId } of batch) {
      const device = known.get(uuid);
      if (!device || device.asked.has(sId)) continue;
      device.asked.add(sId);
      size += 1;
      sIds.add(sId);
      devices.set(device.deviceId, device);
    }
    if (devices.size === 0) return;
    for (const { deviceId, ...sense } of await listSenses(db, [...devices.keys()], [...sIds]))
      devices.get(deviceId)?.senses.set(sense.sId, sense);
  }

  return {
    async load(batch) {
      if (size > maxRemembered || monotonicClock() - sinceMs > freshMs) {
        known.clear();
        size = 0;
        sinceMs = monotonicClock();
      }
      await loadDevices(new Set(batch.map(({ uuid }) => uuid)));
      await loadSenses(batch);
    },
    get: (uuid) => known.get(uuid) ?? null,
    forget: (uuid) => void known.set(uuid, null),
  };
}

/** Whose devices, and to which of them a key is confined: those with one of these labels; null: all. */
type Owner = { accountId: number; within: readonly string[] | null };

type OwnDevice = { deviceId: number; uuid: string };

/** Those of these devices that are the account's, and within the key's reach. */
async function listOwnDevices(
  sql: Sql,
  { accountId, within }: Owner,
  uuids: string[],
): Promise<OwnDevice[]> {
  const { rows } = await sql.query<OwnDevice>({
    name: 'import-devices',
    text: `
      select id as "deviceId", uuid
        from device
       where account_id = $1 and uuid = any($2::uuid[])
         and ($3::text[] is null or labels && $3)
         and not exists (select from account where id = $1 and removed_at is not null)`,
    values: [accountId, uuids, within],
  });
  return rows;
}

/** A sense of a device as its configuration has it. */
type FoundSense = Sense & { deviceId: number };

/** Those of these senses that the configurations of these devices name. */
async function listSenses(sql: Sql, deviceIds: number[], sIds: string[]): Promise<FoundSense[]> {
  const { rows } = await sql.query<{ deviceId: number; sense: Sense }>({
    name: 'import-senses',
    text: `
      select device.id as "deviceId", sense
        from device
       cross join json_array_elements(configuration -> 'module') module
       cross join json_array_elements(module -> 'senses') sense
       where device.id = any($1::bigint[]) and sense ->> 'sId' = any($2::text[])`,
    values: [deviceIds, sIds],
  });
  return rows.map(({ deviceId, sense }) => ({ deviceId, ...sense }));
}

/**
 * Begins what stores a batch: no device goes before it ends (`ingestLock`), and it waits for no lock longer than
 * this. That is less than a server takes to look for a deadlock (1 s): where an import and ingest wait for
 * each other, it is the import that gives way.
 */
async function beginBatch(tx: Sql, longestWaitMs: number): Promise<void> {
  await tx.query(
    `select set_config('lock_timeout', $1, true), pg_advisory_xact_lock_shared(${ingestLock})`,
    [`${longestWaitMs}ms`],
  );
}

type StoreImportDeps = Pick<ImportPorts, 'add' | 'store' | 'hold' | 'note' | 'count'> & {
  db: Database;
  clock: Clock;
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
};

/** What became of a batch. */
type StoredBatch = {
  added: number;
  repeated: number;
  rejected: { row: ImportRow; reason: string }[];
  /** Of devices that are gone, or out of reach, since they were looked up. */
  gone: ImportRow[];
};

/** How it is tried. */
type Attempt = {
  /** No measurement of it is expected to be there already. */
  areNew: boolean;
  /** Devices are held before their rows are written, not after it. */
  holdsFirst: boolean;
};

/** Ingest waits for a transaction that waits for it; so long at most. */
const longestWaitMs = 50;
/** What the database cannot take for now is tried again for so long. */
const triesForMs = 10_000;
const retryAfter = { firstMs: 10, maxMs: 500 };

/**
 * Stores a batch in one transaction: all of it, or nothing. A device's row is held at the end of it only, so
 * that its messages go on being stored meanwhile. Where one of those wrote the same milliseconds the two may wait
 * for each other; then the import gives way (`beginBatch`), and holds the rows first when it tries again.
 * `areNew`: a guess, which costs another attempt where it is wrong. Throws `unavailable` where the database
 * was away for too long, or `signal` aborted.
 */
async function storeImported(
  rows: ImportRow[],
  owner: Owner,
  areNew: boolean,
  signal: AbortSignal,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  const attempt: Attempt = { areNew, holdsFirst: false };
  const untilMs = deps.monotonicClock() + triesForMs;
  let failures = 0;
  for (;;) {
    try {
      return await deps.db.transaction((tx) => tryOnce(tx, rows, owner, attempt, deps));
    } catch (error) {
      const kind = kindOf(error);
      if (kind === 'unique' && attempt.areNew) {
        attempt.areNew = false;
        continue;
      }
      if (kind === 'unstorable') return storeHalves(rows, owner, signal, deps);
      if (!['unavailable', 'cancelled', 'serialization'].includes(kind)) throw error;
      if (isContended(error)) attempt.holdsFirst = true;
      // Whether it was committed may be unknown: then all of it is there already.
      else attempt.areNew = false;
      if (signal.aborted || deps.monotonicClock() > untilMs) throw error;
      failures += 1;
      await pause(backoffMs(failures, retryAfter), signal);
    }
  }
}

async function tryOnce(
  tx: Transaction,
  rows: ImportRow[],
  owner: Owner,
  { areNew, holdsFirst }: Attempt,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  await beginBatch(tx, longestWaitMs);
  const uuids = [...new Set(rows.map(({ uuid }) => uuid))];
  const own = await listOwnDevices(tx, owner, uuids);
  const ids = new Set(own.map(({ deviceId }) => deviceId));
  const isThere = ({ deviceId }: ImportRow) => ids.has(deviceId);
  const there = ids.size === uuids.length ? rows : rows.filter(isThere);
  const gone = there === rows ? [] : rows.filter((row) => !isThere(row));
  if (holdsFirst) await deps.hold(tx, [...ids]);
  let added = there.length;
  let crowded: ImportRow[] = [];
  if (areNew) await deps.add(tx, there);
  else ({ added, crowded } = await deps.store(tx, there));
  if (added > 0) {
    await deps.note(tx, there, deps.clock());
    await deps.count(tx, owner.accountId, there, added);
  }
  const reason = 'invalid: this sense already has 1,000 values at this millisecond, the maximum';
  const rejected = crowded.map((row) => ({ row, reason }));
  return { added, repeated: there.length - added - crowded.length, rejected, gone };
}

/** One of the rows is to blame: they are halved until it is alone. */
async function storeHalves(
  rows: ImportRow[],
  owner: Owner,
  signal: AbortSignal,
  deps: StoreImportDeps,
): Promise<StoredBatch> {
  const [first] = rows;
  if (rows.length === 1 && first) {
    const rejected = [{ row: first, reason: 'internal: the database rejected it' }];
    return { added: 0, repeated: 0, rejected, gone: [] };
  }
  const middle = Math.ceil(rows.length / 2);
  const one = await storeImported(rows.slice(0, middle), owner, false, signal, deps);
  const other = await storeImported(rows.slice(middle), owner, false, signal, deps);
  return {
    added: one.added + other.added,
    repeated: one.repeated + other.repeated,
    rejected: [...one.rejected, ...other.rejected],
    gone: [...one.gone, ...other.gone],
  };
}

/** It waited for a lock, or would have waited in a circle. */
function isContended(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return [states.lockNotAvailable, states.deadlockDetected].some(
    (state) => state === stateOf(cause),
  );
}

/** A measurement of a device of the account, and the line that says it. */
type ImportRow = {
  line: number;
  uuid: string;
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long: number | undefined;
};

/** What other features do for an import. */
export type ImportPorts = {
  /** What is wrong with a row, by the rules for what devices send; null: nothing. */
  check(
    row: ImportRow,
    senses: ReadonlyMap<string, Sense>,
    arrivedTs: WallMs,
  ): Pick<Rejection, 'reason' | 'message'> | null;
  /** Throws a unique violation where a sense has a value in one of these milliseconds already. */
  add(tx: Transaction, rows: ImportRow[]): Promise<void>;
  /** Stores what is not there yet. `crowded`: those for which there is no room. */
  store(tx: Transaction, rows: ImportRow[]): Promise<{ added: number; crowded: ImportRow[] }>;
  /** Keeps ingest from storing something of these devices until the transaction ends. */
  hold(tx: Sql, deviceIds: number[]): Promise<void>;
  /** Voids what processes know of the newest measurements of the rows' devices. */
  note(tx: Sql, rows: ImportRow[], arrivedTs: WallMs): Promise<void>;
  /** Counts what was added for the account's quota `storedBytes`. */
  count(tx: Sql, accountId: number, rows: ImportRow[], added: number): Promise<void>;
  /** Throws where that quota is used up. */
  checkRoom(accountId: number): Promise<void>;
  /** Rejects once a token opens nothing any more. */
  authenticate(token: string): Promise<unknown>;
  /** Whether messages of devices of other accounts wait to be stored. */
  othersWait(accountId: number): boolean;
};
