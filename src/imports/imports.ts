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
  /** Lines that were stored already. */
  repeated = 0;
  rejected = 0;
  /** The first ones found. They are not always in the order of their lines. */
  readonly errors: LineError[] = [];

  reject(line: number, reason: string): void {
    this.rejected += 1;
    if (this.errors.length < maxErrors) this.errors.push({ line, reason });
  }

  /** The numbers as a sentence. */
  describe(): string {
    return (
      `${this.stored} lines are stored, ${this.repeated} were already there, ${this.rejected} ` +
      'are rejected'
    );
  }
}

/** The most devices in one transaction, which locks them. */
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

  /** Returns all candidates, and starts an empty batch. */
  take(): ImportCandidate[] {
    const taken = this.#candidates;
    this.#candidates = [];
    this.#uuids = new Set();
    return taken;
  }
}

const fewest = 2_000;
const most = 5_000;
/** A transaction that takes this long makes the next ones smaller, because ingest may wait for it. */
const longestMs = 40;

/** Decides how many rows a transaction has: as many as the database stores in a short time. */
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
  Pick<ImportPorts, 'check' | 'checkStorage' | 'othersWait'> & {
    /** Rejects once whoever imports has lost access. */
    recheck(): Promise<unknown>;
    /** Limits how many pieces of imports are worked on at once, over all accounts. */
    slots: FairBudget;
  };

/** Lines are read without a pause until they have cost this much: about 2 ms, or 5 on a busy machine. */
const costAtOnce = 600;
/** A bad line costs more than a good one, and a long one more than a short one. */
const rejectedCost = 4;
const charactersOfCost = 100;

/** What was read is stored after this long, however little it is. */
const waitsAtMostMs = 1_000;

/** How often the room and the access of whoever imports are checked. */
const lookEveryMs = 1_000;

/**
 * Stores the lines of a body batch by batch, each in its own transaction. At any moment `receipt` counts what is
 * stored. Reads no further than it has stored. After an error, whole batches remain.
 */
export class ImportRun {
  readonly receipt = new Receipt();
  readonly #owner: Owner;
  readonly #signal: AbortSignal;
  readonly #deps: RunImportDeps;
  readonly #devices: Devices;
  readonly #batch = new CandidateBatch();
  readonly #pace = new Pace();
  /** Whether the previous batch was entirely new. */
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
      await this.#withSlot(async () => {
        await this.#readLines(lines.take(chunk), reader);
        // Lines that arrive slowly do not wait for a full batch.
        if (this.#deps.monotonicClock() - this.#storedMs > waitsAtMostMs) await this.#store();
      });
    }
    await this.#withSlot(async () => {
      await this.#readLines(lines.end(), reader);
      reader.end();
      await this.#store();
    });
  }

  async #withSlot(work: () => Promise<void>): Promise<void> {
    const refuse = () => new DomainError('unavailable', 'The service is stopping.');
    const wait = { signal: this.#signal, refuse };
    const release = await this.#deps.slots.take(`${this.#owner.accountId}`, wait);
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
    // Leaves half of the database's time to others.
    if (this.#deps.othersWait(this.#owner.accountId)) await pause(tookMs, this.#signal);
  }

  async #lookAgain(): Promise<void> {
    const monotonicMs = this.#deps.monotonicClock();
    if (monotonicMs - this.#lookedMs < lookEveryMs) return;
    this.#lookedMs = monotonicMs;
    await this.#deps.recheck();
    await this.#deps.checkStorage(this.#owner.accountId);
  }

  /** The candidates that may be stored. Rejects the others. */
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

/** A device of the account, with those of its senses that were asked for. A missing sense is not configured. */
type ImportDevice = { deviceId: number; senses: Map<string, Sense> };

type Devices = {
  /** Loads the devices and senses of the batch that are not known. */
  load(batch: readonly ImportCandidate[]): Promise<void>;
  /** Null: the account has no such device, or the API key does not cover it. */
  get(uuid: string): ImportDevice | null;
  /** The device was removed in the meantime. */
  forget(uuid: string): void;
};

/** An import sees a changed configuration within this time. */
const freshMs = 5_000;
/** How many devices and senses one import remembers: about 10 MB. */
const maxRemembered = 50_000;

type Known = ImportDevice & { asked: Set<string> };

/** Remembers the devices and senses of an import for a while, because most lines repeat earlier ones. */
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

/** The account, and the devices that an API key covers: those with one of these labels; null: all. */
type Owner = { accountId: number; within: readonly string[] | null };

type OwnDevice = { deviceId: number; uuid: string };

/** Those of these devices that belong to the account and that the key covers. */
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

/** A sense in a device's configuration. */
type FoundSense = Sense & { deviceId: number };

/** Those of these senses that the devices' configurations name. */
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
 * Begins the transaction of a batch. Until it ends no device is removed (`ingestLock`). It waits for no lock longer
 * than `longestWaitMs`, which is less than the server waits before it looks for a deadlock (1 s). So if an import and
 * ingest wait for each other, the import gives way.
 */
async function beginBatch(tx: Sql, longestWaitMs: number): Promise<void> {
  await tx.query(
    `select set_config('lock_timeout', $1, true), pg_advisory_xact_lock_shared(${ingestLock})`,
    [`${longestWaitMs}ms`],
  );
}

type StoreImportDeps = Pick<ImportPorts, 'add' | 'store' | 'lockDevices' | 'note' | 'count'> & {
  db: Database;
  clock: Clock;
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
};

/** What became of a batch. */
type StoredBatch = {
  added: number;
  repeated: number;
  rejected: { row: ImportRow; reason: string }[];
  /** Rows of devices that were removed, or are no longer covered, since they were looked up. */
  gone: ImportRow[];
};

/** How a batch is tried. */
type Attempt = {
  /** No measurement in it is expected to be stored already. */
  areNew: boolean;
  /** Locks the devices before their rows are written, not afterwards. */
  holdsFirst: boolean;
};

/** How long ingest may wait for an import that waits for it. */
const longestWaitMs = 50;
/** How long a batch is retried while the database cannot store it. */
const triesForMs = 10_000;
const retryAfter = { firstMs: 10, maxMs: 500 };

/**
 * Stores a batch in one transaction: all of it or nothing. The devices' rows are locked only at its end, so that their
 * messages can be stored meanwhile. If one of those wrote the same milliseconds, the two may wait for each other. Then
 * the import gives way (`beginBatch`), and locks the rows first in the next attempt. `areNew` is a guess; a wrong one
 * costs another attempt. Throws `unavailable` if the database was away for too long or `signal` aborted.
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
      // The batch may have been committed; then all of it is stored already.
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
  if (holdsFirst) await deps.lockDevices(tx, [...ids]);
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

/** One of the rows is to blame: halves them until it is alone. */
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

/** Whether it waited too long for a lock, or met a deadlock. */
function isContended(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return [states.lockNotAvailable, states.deadlockDetected].some(
    (state) => state === stateOf(cause),
  );
}

/** A measurement of one of the account's devices, and the line it comes from. */
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
  /** What is wrong with a row, by the rules for devices' messages; null: nothing. */
  check(
    row: ImportRow,
    senses: ReadonlyMap<string, Sense>,
    arrivedTs: WallMs,
  ): Pick<Rejection, 'reason' | 'message'> | null;
  /** Throws a unique violation if a sense has a value in one of these milliseconds already. */
  add(tx: Transaction, rows: ImportRow[]): Promise<void>;
  /** Stores what is new. `crowded`: rows that there is no room for. */
  store(tx: Transaction, rows: ImportRow[]): Promise<{ added: number; crowded: ImportRow[] }>;
  /** Keeps ingest from storing anything of these devices until the transaction ends. */
  lockDevices(tx: Sql, deviceIds: number[]): Promise<void>;
  /** Makes what processes remember of the devices' newest measurements invalid. */
  note(tx: Sql, rows: ImportRow[], arrivedTs: WallMs): Promise<void>;
  /** Counts what was added towards the account's quota `storedBytes`. */
  count(tx: Sql, accountId: number, rows: ImportRow[], added: number): Promise<void>;
  /** Throws if that quota is used up. */
  checkStorage(accountId: number): Promise<void>;
  /** Rejects once the token is no longer valid. */
  authenticate(token: string): Promise<unknown>;
  /** Whether messages of other accounts' devices wait to be stored. */
  othersWait(accountId: number): boolean;
};
