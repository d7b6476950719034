import { LRUCache } from 'lru-cache';
import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock.ts';
import { holdMs, RefusalCounts, type LoginRefusal } from './refusal-counts.ts';
import { addRefusedLogins, closeRefusedLogins } from './refused-logins.ts';

/** Told of every login of a device. Keeps what its owner is to know of those that were refused. */
export type LoginWatch = {
  refused(login: LoginRefusal): void;
  letIn(device: { deviceId: number; uuid: string }): void;
};

export type LoginWatchDeps = {
  db: Sql;
  clock: Clock;
  /** A write failed; it is tried again with the next one. */
  onError: (error: unknown) => void;
  intervalMs?: number;
};

export type RunningLoginWatch = LoginWatch & {
  /** Writes what is due. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

/** Devices that were let in, of which the database is to be told. */
const maxLetIn = 50_000;
const closedAtOnce = 1_000;
/** Another process may write a refusal of before a login as late as this. */
const lateMs = holdMs + 15_000;

/** A device's newest login, and the first one of which the database is to be told with it. */
type LetIn = { ts: number; sinceTs: number; told: boolean };

/**
 * Whoever knows a uuid can have its logins refused as often as they like. So refusals are added up, a uuid is
 * written once a minute at most, and few uuids with each write, the accounts' in turn (`RefusalCounts`).
 */
export function startLoginWatch(deps: LoginWatchDeps): RunningLoginWatch {
  const { db, clock, onError, intervalMs = 2_000 } = deps;
  const refusals = new RefusalCounts();
  const letIn = new LRUCache<number, LetIn>({ max: maxLetIn });

  function noteLetIn({ deviceId, uuid }: { deviceId: number; uuid: string }): void {
    const ts = clock();
    const before = letIn.get(deviceId);
    // A request is a login: of many in a row the database is told as of one, unless some was refused between them.
    if (before && (!before.told || refusals.refusedTs(uuid) < before.ts)) before.ts = ts;
    else letIn.set(deviceId, { ts, sinceTs: ts, told: false });
    refusals.letIn(uuid, ts);
  }

  async function writeRefused(): Promise<void> {
    const rows = refusals.take(clock());
    if (rows.length === 0) return;
    try {
      await addRefusedLogins(db, rows);
    } catch (error) {
      refusals.putBack(rows);
      throw error;
    }
  }

  /** Once a write later than refusals, so that these are there; and once when no other process has any. */
  async function writeLetIn(): Promise<void> {
    const nowTs = clock();
    const due = [...letIn.entries()].filter(
      ([, { sinceTs, told }]) => nowTs - sinceTs >= (told ? lateMs : intervalMs),
    );
    for (let from = 0; from < due.length; from += closedAtOnce) {
      const some = due.slice(from, from + closedAtOnce);
      await closeRefusedLogins(
        db,
        some.map(([deviceId, { ts }]) => [deviceId, ts - 1]),
      );
      for (const [deviceId, login] of some)
        if (login.told) letIn.delete(deviceId);
        else login.told = true;
    }
  }

  async function write(): Promise<void> {
    await writeRefused();
    await writeLetIn();
  }

  let writing = Promise.resolve();
  const flush = () => (writing = writing.then(write).catch(onError));
  const timer = setInterval(() => void flush(), intervalMs);
  timer.unref();

  return {
    refused: (login) => refusals.add(login, clock()),
    letIn: noteLetIn,
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
