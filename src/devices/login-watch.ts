import { LRUCache } from 'lru-cache';
import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock.ts';
import {
  addRefusedLogins,
  closeRefusedLogins,
  type RefusedLogins,
} from './refused-login-queries.ts';

/** `accountId`: whose device it is, where that is known; `unknown`: of a uuid that is no device's now. */
export type RefusedLogin = {
  uuid: string;
  accountId?: number | undefined;
  reason: string;
  address?: string | undefined;
};

/** Told of every login of a device. Keeps what its owner is to know of those that were refused. */
export type LoginWatch = {
  refused(login: RefusedLogin): void;
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

/** uuids that are remembered for refused logins; who was not refused for longest is forgotten first. */
const maxUuids = 20_000;
/** Reasons and addresses of a uuid between two writes; further ones are left out. */
const maxTallies = 8;
/** uuids of one write, and of one account while others wait. */
const writtenAtOnce = 500;
const perAccount = 100;
/** Between two writes of one uuid. */
const holdMs = 60_000;
/** Devices that were let in, of which the database is to be told. */
const maxLetIn = 50_000;
const closedAtOnce = 1_000;
/** Another process may write a refusal of before a login as late as this. */
const lateMs = holdMs + 15_000;

type Tally = { count: number; firstTs: number; lastTs: number; reason: string; address: string };
type OfUuid = {
  accountId: number | undefined;
  tallies: Map<string, Tally>;
  writtenTs: number;
  letInTs: number;
  refusedTs: number;
};
/** A device's newest login, and the first one of which the database is to be told with it. */
type LetIn = { ts: number; sinceTs: number; told: boolean };

/**
 * Whoever knows a uuid can have its logins refused as often as they like. So refusals are added up here, a
 * uuid is written once a minute at most, and few uuids with each write, the accounts' in turn.
 */
export function startLoginWatch(deps: LoginWatchDeps): RunningLoginWatch {
  const { db, clock, onError, intervalMs = 2_000 } = deps;
  const waiting = new Set<string>();
  const known = new LRUCache<string, OfUuid>({
    max: maxUuids,
    disposeAfter: (_, uuid, reason) => void (reason === 'evict' && waiting.delete(uuid)),
  });
  const letIn = new LRUCache<number, LetIn>({ max: maxLetIn });

  function add(uuid: string, accountId: number | undefined, tally: Tally): void {
    const of: OfUuid = known.get(uuid) ?? {
      accountId,
      tallies: new Map(),
      writtenTs: -Infinity,
      letInTs: -Infinity,
      refusedTs: -Infinity,
    };
    known.set(uuid, of);
    of.accountId ??= accountId;
    of.refusedTs = Math.max(of.refusedTs, tally.lastTs);
    const key = `${tally.reason} ${tally.address}`;
    const before = of.tallies.get(key);
    if (!before && of.tallies.size >= maxTallies) return;
    of.tallies.set(key, before ? sumOf(before, tally) : tally);
    waiting.add(uuid);
  }

  function refused({ uuid, accountId, reason, address = '' }: RefusedLogin): void {
    const ts = clock();
    add(uuid, accountId, { count: 1, firstTs: ts, lastTs: ts, reason, address });
  }

  function noteLetIn({ deviceId, uuid }: { deviceId: number; uuid: string }): void {
    const ts = clock();
    const of = known.peek(uuid);
    const before = letIn.get(deviceId);
    // A request is a login: of many in a row the database is told as of one, unless some was refused between them.
    if (before && (!before.told || (of?.refusedTs ?? -Infinity) < before.ts)) before.ts = ts;
    else letIn.set(deviceId, { ts, sinceTs: ts, told: false });
    // What is refused in the same millisecond was refused after its token was found right.
    if (of) of.letInTs = ts - 1;
  }

  /** Those that may be written now: few of an account first, then whoever is left. */
  function pick(nowTs: number): string[] {
    const due = [...waiting].filter((uuid) => nowTs - (known.peek(uuid)?.writtenTs ?? 0) >= holdMs);
    const counts = new Map<number | undefined, number>();
    const rest: string[] = [];
    const picked: string[] = [];
    for (const uuid of due) {
      const accountId = known.peek(uuid)?.accountId;
      const count = counts.get(accountId) ?? 0;
      counts.set(accountId, count + 1);
      (count < perAccount ? picked : rest).push(uuid);
    }
    return [...picked, ...rest].slice(0, writtenAtOnce);
  }

  async function writeRefused(): Promise<void> {
    const nowTs = clock();
    const taken = new Map<string, Tally[]>();
    for (const uuid of pick(nowTs)) {
      waiting.delete(uuid);
      const of = known.peek(uuid);
      if (!of) continue;
      taken.set(uuid, [...of.tallies.values()]);
      of.tallies.clear();
      of.writtenTs = nowTs;
    }
    if (taken.size === 0) return;
    try {
      await addRefusedLogins(db, [...taken].flatMap(toRows));
    } catch (error) {
      for (const [uuid, tallies] of taken) {
        for (const tally of tallies) add(uuid, undefined, tally);
        const of = known.peek(uuid);
        if (of) of.writtenTs = -Infinity;
      }
      throw error;
    }
  }

  function toRows([uuid, tallies]: [string, Tally[]]): RefusedLogins[] {
    const letInTs = known.peek(uuid)?.letInTs ?? -Infinity;
    return tallies.map((tally) => ({ uuid, ...tally, isOpen: tally.lastTs > letInTs }));
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
    refused,
    letIn: noteLetIn,
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

function sumOf(before: Tally, { count, lastTs }: Tally): Tally {
  return { ...before, count: before.count + count, lastTs: Math.max(before.lastTs, lastTs) };
}
