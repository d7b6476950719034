import type { Sql } from '../db/sql.ts';
import type { Actor } from './entry.ts';
import { addRefusals, type AuditRefusal } from './refusal-queries.ts';
import type { AuditKind } from './schema.ts';

/** Writes down attempts that were refused, which anybody may make as often as they like. */
export type RefusalLog = {
  /** Noted in memory and written within a second: the answer to a refused login does not wait for it. */
  note(accountId: number, kind: AuditKind, actor: Actor): void;
  /** Writes what is noted. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

export type RefusalLogOptions = {
  db: Sql;
  clock: () => number;
  intervalMs?: number;
  /** Attempts that differ and wait to be written; further ones are not noted. */
  maxWaiting?: number;
  onError: (error: unknown) => void;
};

const hourMs = 3_600_000;

/**
 * Equal attempts (account, kind, address, hour) are one row with a count. A process that is killed takes
 * those of the last second with it.
 */
export function startRefusalLog(options: RefusalLogOptions): RefusalLog {
  const { db, clock, intervalMs = 1_000, maxWaiting = 1_000, onError } = options;
  let waiting = new Map<string, AuditRefusal>();
  let writing = Promise.resolve();

  function add(refusal: AuditRefusal): void {
    const { accountId, kind, actor, hourTs } = refusal;
    const key = `${accountId} ${kind} ${hourTs} ${actor.address}`;
    const known = waiting.get(key);
    if (known) {
      known.count += refusal.count;
      known.lastTs = Math.max(known.lastTs, refusal.lastTs);
    } else if (waiting.size < maxWaiting) waiting.set(key, refusal);
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return;
    const refusals = [...waiting.values()];
    waiting = new Map();
    try {
      await addRefusals(db, refusals);
    } catch (error) {
      for (const refusal of refusals) add(refusal);
      throw error;
    }
  }

  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();
  return {
    note(accountId, kind, actor) {
      const ts = clock();
      const hourTs = ts - (ts % hourMs);
      add({ accountId, kind, actor, hourTs, firstTs: ts, lastTs: ts, count: 1 });
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
