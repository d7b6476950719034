import type { Sql } from '../db/sql.ts';
import { type Listening, unnoticedGapMs } from '../engine/last-seen.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

type ConnectorUptimeOptions = {
  db: Sql;
  /** The service's time, ms. */
  clock: Clock;
  /** The connector that stands for this one among those that share their devices; null: it is not configured. */
  leaderOf(connectorId: number): number | null;
  /** It could not be written or read; said once until it can. */
  onError: (error: unknown) => void;
  /** Between two times, in ms; well below what is a gap. */
  everyMs?: number;
};

export type ConnectorUptime = {
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
export async function startConnectorUptime(
  options: ConnectorUptimeOptions,
): Promise<ConnectorUptime> {
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
type HeardConnectors = {
  /** From this time on gaps are to be read: those that ended before are known. */
  readonly sinceTs: number;
  note(rows: HeardRow[]): void;
  /** A connector that never reported has one gap, without a beginning. */
  of(connectorId: number, nowTs: WallMs): Listening;
  /** Whether it is known by now if the connector listened then: it reported later, or has been silent for too long. */
  isKnownAt(connectorId: number, ts: number, nowTs: WallMs): boolean;
};

/** `keptMs`: gaps that ended earlier are forgotten. `silentMs`: a connector that is silent for longer does not listen. */
function createHeardConnectors(keptMs: number, silentMs: number): HeardConnectors {
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

/** A connector that says nothing for longer did not listen. */
const gapSeconds = unnoticedGapMs / 1_000;
/** How long gaps are kept: as long as the longest time that purposes can ask for. */
const keptDays = 31;

/** `from_at` and `to_at`: one of its gaps; null where it has none. */
type HeardRow = {
  connector_id: number;
  heard_at: number;
  from_at: number | null;
  to_at: number | null;
};

/**
 * Writes that these connectors listen now, by the service's time. Where the last time is too long ago, also
 * because the clock was set forward, what lies between is a gap.
 */
async function noteListening(db: Sql, connectorIds: number[]): Promise<void> {
  await db.query(
    `with time as materialized (
       select service_now() as now
     ), before as (
       select l.connector_id, l.heard_at
         from listening l
        where l.connector_id = any($1::integer[])
        order by l.connector_id
          for update
     ), cut as (
       -- The clock was ahead when it was written, and has been set back: what is still to come is no gap.
       update listening_gap g
          set to_at = greatest(g.from_at, time.now)
         from time
        where g.connector_id = any($1::integer[])
          and g.to_at > time.now + $2 * interval '1 second'
     ), gap as (
       insert into listening_gap (connector_id, from_at, to_at)
       select b.connector_id, b.heard_at, time.now
         from before b, time
        where b.heard_at < time.now - $2 * interval '1 second'
       on conflict do nothing
     )
     insert into listening (connector_id, heard_at)
     select id, time.now
       from unnest($1::integer[]) as id, time, (select count(*) from before) locked
      order by id
     on conflict (connector_id) do update set heard_at = excluded.heard_at`,
    [connectorIds, gapSeconds],
  );
}

/**
 * When each connector last listened, with each of its gaps that ended after `sinceTs` (ms), in their order.
 * `connectorId`: only of this one.
 */
async function listHeard(
  db: Sql,
  sinceTs: number,
  connectorId: number | null = null,
): Promise<HeardRow[]> {
  // One statement: the end of a gap and the time that ended it are seen together.
  const { rows } = await db.query<HeardRow>(
    `select l.connector_id, l.heard_at, g.from_at, g.to_at
       from listening l
       left join listening_gap g
         on g.connector_id = l.connector_id and g.to_at > ms_to_timestamp($1)
      where $2::integer is null or l.connector_id = $2
      order by l.connector_id, g.from_at`,
    [sinceTs, connectorId],
  );
  return rows;
}

/** Forgets gaps that no purpose can ask about any more. A chore of the upkeep. */
export async function forgetGaps(db: Sql, nowTs: WallMs): Promise<void> {
  await db.query('delete from listening_gap where to_at < ms_to_timestamp($1)', [
    nowTs - keptDays * 86_400_000,
  ]);
}

/**
 * When the connector of a device listened from `sinceTs` on (ms), for a process without connectors; undefined where
 * its connector is not configured, which counts as listening. `leaderOf`: as of `startConnectorUptime`.
 */
export async function findConnectorUptime(
  db: Sql,
  deviceId: number,
  { sinceTs, nowTs }: { sinceTs: number; nowTs: WallMs },
  leaderOf: (connectorId: number) => number | null,
): Promise<Listening | undefined> {
  const { rows } = await db.query<{ connector_id: number }>(
    `
      select coalesce(p.connector_id, d.connector_id) as connector_id
        from device d
        left join presence p on p.device_id = d.id
       where d.id = $1`,
    [deviceId],
  );
  const leaderId = rows[0] ? leaderOf(rows[0].connector_id) : null;
  if (leaderId === null) return undefined;
  const heard = createHeardConnectors(keptDays * 86_400_000, gapSeconds * 1_000);
  heard.note(await listHeard(db, sinceTs, leaderId));
  return heard.of(leaderId, nowTs);
}
