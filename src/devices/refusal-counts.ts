import { LRUCache } from 'lru-cache';
import type { RefusedLogins } from './refused-logins.ts';

/** `accountId`: whose device it is, where that is known; `unknown`: of a uuid that is no device's now. */
export type LoginRefusal = {
  uuid: string;
  accountId?: number | undefined;
  reason: string;
  address?: string | undefined;
};

/** uuids that are remembered for refused logins; who was not refused for longest is forgotten first. */
const maxUuids = 20_000;
/** Reasons and addresses of a uuid between two writes; further ones are left out. */
const maxCounts = 8;
/** uuids of one write, and of one account while others wait. */
const writtenAtOnce = 500;
const perAccount = 100;
/** Between two writes of one uuid, in milliseconds. */
export const holdMs = 60_000;

type RefusalCount = Omit<RefusedLogins, 'uuid' | 'isOpen'>;
type OfUuid = {
  accountId: number | undefined;
  /** By reason and address. */
  counts: Map<string, RefusalCount>;
  writtenTs: number;
  letInTs: number;
  refusedTs: number;
};

/** Refused logins of uuids, added up until they are written. Times are in ms. */
export class RefusalCounts {
  readonly #waiting = new Set<string>();
  readonly #known = new LRUCache<string, OfUuid>({
    max: maxUuids,
    disposeAfter: (_, uuid, reason) => void (reason === 'evict' && this.#waiting.delete(uuid)),
  });

  add({ uuid, accountId, reason, address = '' }: LoginRefusal, ts: number): void {
    this.#add(uuid, accountId, { count: 1, firstTs: ts, lastTs: ts, reason, address });
  }

  /** When a login of the uuid was refused last; -Infinity where none is remembered. */
  refusedTs(uuid: string): number {
    return this.#known.peek(uuid)?.refusedTs ?? -Infinity;
  }

  /** The device was let in: what was refused before is over. */
  letIn(uuid: string, ts: number): void {
    const of = this.#known.peek(uuid);
    // What is refused in the same millisecond was refused after its token was found right.
    if (of) of.letInTs = ts - 1;
  }

  /** What is to be written now; it counts as written. */
  take(nowTs: number): RefusedLogins[] {
    return this.#pick(nowTs).flatMap((uuid) => {
      this.#waiting.delete(uuid);
      const of = this.#known.peek(uuid);
      if (!of) return [];
      const counts = [...of.counts.values()];
      of.counts.clear();
      of.writtenTs = nowTs;
      return counts.map((count) => ({ uuid, ...count, isOpen: count.lastTs > of.letInTs }));
    });
  }

  /** They could not be written: they wait again, and may be taken at once. */
  putBack(rows: RefusedLogins[]): void {
    for (const { uuid, isOpen: _, ...count } of rows) {
      this.#add(uuid, undefined, count);
      const of = this.#known.peek(uuid);
      if (of) of.writtenTs = -Infinity;
    }
  }

  #add(uuid: string, accountId: number | undefined, added: RefusalCount): void {
    const of = this.#known.get(uuid) ?? emptyOf(accountId);
    this.#known.set(uuid, of);
    of.accountId ??= accountId;
    of.refusedTs = Math.max(of.refusedTs, added.lastTs);
    const key = `${added.reason} ${added.address}`;
    const before = of.counts.get(key);
    if (!before && of.counts.size >= maxCounts) return;
    of.counts.set(key, before ? sumOf(before, added) : added);
    this.#waiting.add(uuid);
  }

  /** Those that may be written now: few of an account first, then whoever is left. */
  #pick(nowTs: number): string[] {
    const perOwner = new Map<number | undefined, number>();
    const rest: string[] = [];
    const picked: string[] = [];
    for (const uuid of this.#waiting) {
      const { accountId, writtenTs = 0 } = this.#known.peek(uuid) ?? {};
      if (nowTs - writtenTs < holdMs) continue;
      const before = perOwner.get(accountId) ?? 0;
      perOwner.set(accountId, before + 1);
      (before < perAccount ? picked : rest).push(uuid);
    }
    return [...picked, ...rest].slice(0, writtenAtOnce);
  }
}

const emptyOf = (accountId: number | undefined): OfUuid => ({
  accountId,
  counts: new Map(),
  writtenTs: -Infinity,
  letInTs: -Infinity,
  refusedTs: -Infinity,
});

function sumOf(before: RefusalCount, { count, lastTs }: RefusalCount): RefusalCount {
  return { ...before, count: before.count + count, lastTs: Math.max(before.lastTs, lastTs) };
}
