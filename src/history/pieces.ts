import { kindOf } from '../db/errors.ts';
import type { MonotonicClock } from '../lib/clock.ts';
import { pause } from '../lib/wait.ts';

/** Rows that belong to a device or an account, and can be many: they go some thousand a transaction. */
export type OwnedRows = {
  table: string;
  /** The column that names the owner; there is an index that begins with it. */
  owner: 'device_id' | 'account_id' | 'series_id';
  /** Further columns before the owner's in the index, with all values that they have. */
  before?: string;
};

/** Removed devices of one account; null: an earlier version removed them, and nobody knows whose they were. */
export type RemovedDevices = { accountId: number | null; deviceIds: number[] };

/** Rows that one transaction deletes at most. */
export const pieceRows = 5_000;

/** Deletes `limit` rows of these owners at most, by the statement's `$1` and `$2`. */
export function deletePieceOf({ table, owner, before }: OwnedRows): string {
  const where = `${before ? `${before} and ` : ''}${owner} = any($1::bigint[])`;
  return `delete from ${table}
           where ctid = any(array(select ctid from ${table} where ${where} limit $2))`;
}

/** Full pieces of one turn. */
const piecesOfTurn = 20;
/** After a piece it rests as long as that took, so that others get at the database; and no longer than this. */
const longestRestMs = 250;

/** How much is deleted before others' removals have their turn. */
export class Turn {
  readonly #nowMs: MonotonicClock;
  readonly #signal: AbortSignal;
  #left = piecesOfTurn;
  /** Of a piece: less after one that took longer than a statement may. */
  #share = 1;

  constructor(nowMs: MonotonicClock, signal: AbortSignal) {
    this.#nowMs = nowMs;
    this.#signal = signal;
  }

  get isOver(): boolean {
    return this.#left <= 0 || this.#signal.aborted;
  }

  /** Whether anything was done in it. */
  get isBegun(): boolean {
    return this.#left < piecesOfTurn;
  }

  /** Deletes piece after piece. True when nothing was left; false when the turn was over first. */
  async deleteAll(deleteSome: (limit: number) => Promise<{ rowCount: number | null }>) {
    const countDeleted = async (limit: number) => (await deleteSome(limit)).rowCount ?? 0;
    while (!this.isOver) if ((await this.piece(countDeleted, pieceRows)).isLast) return true;
    return false;
  }

  /** Does a piece with `most` things, or fewer where that takes too long. `isLast`: there were not so many left. */
  async piece(
    work: (limit: number) => Promise<number>,
    most: number,
  ): Promise<{ count: number; isLast: boolean }> {
    for (;;) {
      const limit = Math.max(1, Math.floor(most * this.#share));
      try {
        const count = await this.spend(() => work(limit));
        return { count, isLast: count < limit };
      } catch (error) {
        if (kindOf(error) !== 'cancelled' || limit === 1) throw error;
        this.#share /= 2;
      }
    }
  }

  /** Work that says how much it did: nothing costs nothing. */
  async spend(work: () => Promise<number>): Promise<number> {
    const startedMs = this.#nowMs();
    const count = await work();
    if (count === 0) return count;
    this.#left -= 1;
    await pause(Math.min(longestRestMs, this.#nowMs() - startedMs), this.#signal);
    return count;
  }
}
