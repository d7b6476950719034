import type { Listening } from '../engine/listening.ts';
import type { HeardRow } from './queries.ts';

type Gap = { fromTs: number; toTs: number };

/** What is remembered of one connector. */
type Heard = {
  heardTs: number;
  gaps: Gap[];
  /** As it is while it listens, and while it does not. */
  whole: Listening;
  open: Listening;
};

const never: Listening = { gaps: [{ fromTs: 0, toTs: null }] };

/** What the database says of connectors, kept for rules that cannot wait. */
export type HeardConnectors = {
  /** From this time on gaps are to be read: those that ended before are known. */
  readonly sinceTs: number;
  note(rows: HeardRow[]): void;
  /** A connector that never reported has one gap, without a beginning. */
  of(connectorId: number, nowTs: number): Listening;
  /** Whether it is known by now if the connector listened then: it reported later, or has been silent for too long. */
  isKnownAt(connectorId: number, ts: number, nowTs: number): boolean;
};

/** `keptMs`: gaps that ended earlier are forgotten. `silentMs`: a connector that is silent for longer does not listen. */
export function createHeardConnectors(keptMs: number, silentMs: number): HeardConnectors {
  const connectors = new Map<number, Heard>();
  let sinceTs = 0;

  function note(rows: HeardRow[]): void {
    // The clock was set back: gaps that ended by the earlier time were cut, and new ones end before `sinceTs`.
    if (rows.length > 0 && rows.every(({ heard_at }) => heard_at < sinceTs)) {
      sinceTs = 0;
      connectors.clear();
    }
    for (const [id, its] of Map.groupBy(rows, ({ connector_id }) => connector_id)) {
      const heardTs = its[0]?.heard_at ?? 0;
      const read = its.flatMap(({ from_at: fromTs, to_at: toTs }) =>
        fromTs === null || toTs === null ? [] : [{ fromTs, toTs }],
      );
      const gaps = merge(connectors.get(id)?.gaps ?? [], read, heardTs - keptMs);
      // Two processes may write at once, and a clock may be set back: a little is read again.
      for (const { toTs } of read) sinceTs = Math.max(sinceTs, toTs - 60_000);
      const open = { gaps: [...gaps, { fromTs: heardTs, toTs: null }] };
      connectors.set(id, { heardTs, gaps, whole: { gaps }, open });
    }
  }

  return {
    get sinceTs() {
      return sinceTs;
    },
    note,
    of(connectorId, nowTs) {
      const heard = connectors.get(connectorId);
      if (!heard) return never;
      return nowTs - heard.heardTs > silentMs ? heard.open : heard.whole;
    },
    isKnownAt(connectorId, ts, nowTs) {
      const heardTs = connectors.get(connectorId)?.heardTs ?? 0;
      return heardTs >= ts || nowTs - heardTs > silentMs;
    },
  };
}

function merge(known: Gap[], read: Gap[], leastTs: number): Gap[] {
  const byStart = new Map([...known, ...read].map((gap) => [gap.fromTs, gap]));
  return [...byStart.values()]
    .filter(({ toTs }) => toTs > leastTs)
    .toSorted((a, b) => a.fromTs - b.fromTs);
}
