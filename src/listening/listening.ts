import type { Sql } from '../db/sql.ts';
import type { Listening } from '../engine/listening.ts';
import { createHeardConnectors } from './heard.ts';
import { gapSeconds, keptDays, listHeard, noteListening } from './queries.ts';

export type ListeningOptions = {
  db: Sql;
  /** The service's time, ms. */
  clock: () => number;
  /** The connector that stands for this one among those that share their devices; null: it is not configured. */
  leaderOf(connectorId: number): number | null;
  /** It could not be written or read; said once until it can. */
  onError: (error: unknown) => void;
  /** Between two times, in ms; well below what is a gap. */
  everyMs?: number;
};

export type ListeningWatch = {
  /**
   * A connector runs in this process. `isListening`: whether it takes what devices send, and that is committed;
   * asked each time before it is written.
   */
  add(connectorId: number, isListening: () => boolean): Promise<void>;
  /** Whether one of this process listens that has this connector's devices. */
  isHere(connectorId: number): boolean;
  /** When the connector did not listen; undefined where that is not asked of it: it is not configured any more. */
  of(connectorId: number): Listening | undefined;
  /** Whether it is known by now if the connector listened then. */
  isKnownAt(connectorId: number, ts: number): boolean;
  close(): Promise<void>;
};

/** Where it could not be written: outages with a moment between them must not look like one long gap. */
const againMs = 1_000;

/**
 * Writes that the connectors of this process listen, and remembers when those of all processes did. A device
 * is not silent while nobody listens.
 */
export async function startListening(options: ListeningOptions): Promise<ListeningWatch> {
  const { db, clock, leaderOf, onError, everyMs = 5_000 } = options;
  const heard = createHeardConnectors(keptDays * 86_400_000, gapSeconds * 1_000);
  const own: { leaderId: number; isListening: () => boolean }[] = [];
  let working = Promise.resolve();
  let isFailing = false;
  let isClosed = false;
  let again: NodeJS.Timeout | undefined;

  async function work(): Promise<void> {
    clearTimeout(again);
    let isWhole = false;
    try {
      const here = new Set(own.filter((one) => one.isListening()).map(({ leaderId }) => leaderId));
      if (here.size > 0) await noteListening(db, [...here]);
      heard.note(await listHeard(db, heard.sinceTs));
      isWhole = own.every(({ leaderId }) => here.has(leaderId));
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    }
    if (!isWhole && !isClosed) again = setTimeout(() => void turn(), againMs).unref();
  }

  /** One at a time. */
  function turn(): Promise<void> {
    working = working.then(work);
    return working;
  }

  function isHere(connectorId: number): boolean {
    const leaderId = leaderOf(connectorId);
    return own.some((one) => one.leaderId === leaderId && one.isListening());
  }

  await turn();
  const timer = setInterval(() => void turn(), everyMs);
  timer.unref();
  return {
    add(connectorId, isListening) {
      const leaderId = leaderOf(connectorId);
      if (leaderId !== null) own.push({ leaderId, isListening });
      return turn();
    },
    isHere,
    of(connectorId) {
      const leaderId = leaderOf(connectorId);
      return leaderId === null ? undefined : heard.of(leaderId, clock());
    },
    isKnownAt(connectorId, ts) {
      const leaderId = leaderOf(connectorId);
      return leaderId === null || isHere(connectorId) || heard.isKnownAt(leaderId, ts, clock());
    },
    async close() {
      isClosed = true;
      clearInterval(timer);
      clearTimeout(again);
      await working;
    },
  };
}
