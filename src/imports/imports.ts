import { DomainError } from '../errors.ts';
import type { Body } from '../http/request.ts';
import { nextTurn } from '../lib/in-turns.ts';
import { pause } from '../lib/wait.ts';
import type { Slots } from '../quotas/slots.ts';
import { CandidateBatch } from './batch.ts';
import type { ImportCandidate } from './candidate.ts';
import { createDevices, type Devices } from './devices.ts';
import { type Line, Lines } from './lines.ts';
import { Pace } from './pace.ts';
import type { ImportPorts, ImportRow } from './ports.ts';
import type { Owner } from './queries.ts';
import { createLineReader, type LineReader } from './reader.ts';
import { Receipt } from './receipt.ts';
import { type StoreImportDeps, storeImported } from './store-batch.ts';

export type RunImportDeps = StoreImportDeps &
  Pick<ImportPorts, 'check' | 'checkRoom' | 'othersWait'> & {
    /** Rejects once whoever imports may not any more. */
    recheck(): Promise<unknown>;
    /** Pieces of imports that are worked on at once, of all accounts. */
    turns: Slots;
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
    this.#storedMs = deps.nowMs();
    this.#devices = createDevices(deps.db, owner, deps.nowMs);
  }

  async run({ type, chunks }: Body): Promise<void> {
    const lines = new Lines();
    const reader = createLineReader(type);
    for await (const chunk of chunks) {
      await this.#inTurn(async () => {
        await this.#readLines(lines.take(chunk), reader);
        // What comes slowly does not wait here for a batch to be full.
        if (this.#deps.nowMs() - this.#storedMs > waitsAtMostMs) await this.#store();
      });
    }
    await this.#inTurn(async () => {
      await this.#readLines(lines.end(), reader);
      reader.end();
      await this.#store();
    });
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const refuse = () => new DomainError('unavailable', 'The service stops.');
    const wait = { signal: this.#signal, refuse };
    const release = await this.#deps.turns.take(this.#owner.accountId, wait);
    await work().finally(release);
  }

  async #readLines(lines: Iterable<Line>, reader: LineReader): Promise<void> {
    for (const line of lines) {
      this.#readLine(line, reader);
      if (this.#batch.isFull(this.#pace.rows)) await this.#store();
      if (this.#cost < costAtOnce) continue;
      this.#cost = 0;
      await nextTurn();
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
    this.#storedMs = this.#deps.nowMs();
    const candidates = this.#batch.take();
    if (candidates.length === 0) return;
    await this.#lookAgain();
    await this.#devices.load(candidates);
    const rows = await this.#check(candidates);
    if (rows.length === 0) return;
    const startedMs = this.#deps.nowMs();
    const result = await storeImported(rows, this.#owner, this.#areNew, this.#signal, this.#deps);
    const tookMs = this.#deps.nowMs() - startedMs;
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
    const nowMs = this.#deps.nowMs();
    if (nowMs - this.#lookedMs < lookEveryMs) return;
    this.#lookedMs = nowMs;
    await this.#deps.recheck();
    await this.#deps.checkRoom(this.#owner.accountId);
  }

  /** Those of the account's devices that may be stored. */
  async #check(candidates: ImportCandidate[]): Promise<ImportRow[]> {
    const arrivedTs = this.#deps.clock();
    const rows: ImportRow[] = [];
    for (const [n, candidate] of candidates.entries()) {
      if (n % costAtOnce === costAtOnce - 1) await nextTurn();
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
