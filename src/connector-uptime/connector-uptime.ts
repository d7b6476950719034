import type { Sql } from '../db/sql.ts';
import { type Listening, unnoticedGapMs } from '../engine/last-seen.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

type ConnectorUptimeOptions = {
  db: Sql;
  /** The service's time, ms. */
  clock: Clock;
  /** The connector that represents this one among those that share its devices; null if it is not configured. */
  leaderOf(connectorId: number): number | null;
  /** Writing or reading failed. Called once until it succeeds again. */
  onError: (error: unknown) => void;
  /** The interval in ms; well below what counts as a gap. */
  everyMs?: number;
};

export type ConnectorUptime = {
  /**
   * Adds a connector that runs in this process. `isListening`: whether it receives what devices send and this is
   * committed; asked each time before it is written.
   */
  add(connectorId: number, isListening: () => boolean): Promise<void>;
  /** Whether a connector of this process that has this connector's devices is listening. */
  isHere(connectorId: number): boolean;
  /** When the connector was not listening; undefined if that does not matter, because it is no longer configured. */
  of(connectorId: number): Listening | undefined;
  /** Whether it is already certain if the connector was listening then. */
  isKnownAt(connectorId: number, ts: number): boolean;
  close(): Promise<void>;
};

/** After a failed write. Outages with a moment between them must not look like one long gap. */
const againMs = 1_000;

/**
 * Records that the connectors of this process are listening, and remembers when those of all processes were. A device
 * does not count as silent while nobody listens.
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
    if (!isWhole && !isClosed) again = setTimeout(() => void refresh(), againMs).unref();
  }

  /** One run at a time. */
  function refresh(): Promise<void> {
    working = working.then(work);
    return working;
  }

  function isHere(connectorId: number): boolean {
    const leaderId = leaderOf(connectorId);
    return own.some((one) => one.leaderId === leaderId && one.isListening());
  }

  await refresh();
  const timer = setInterval(() => void refresh(), everyMs);
  timer.unref();
  return {
    add(connectorId, isListening) {
      const leaderId = leaderOf(connectorId);
      if (leaderId !== null) own.push({ leaderId, isListening });
      return refresh();
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
  /** Its gaps: while it is listening, and while it is not. */
  whole: Listening;
  open: Listening;
};

const never: Listening = { gaps: [{ fromTs: 0, toTs: null }] };

/** What the database says about connectors, in memory for rules that cannot wait. */
type HeardConnectors = {
  /** Gaps that ended before this time are known; later ones must be read. */
  readonly sinceTs: number;
  note(rows: HeardRow[]): void;
  /** A connector that never reported has one gap, without a beginning. */
  of(connectorId: number, nowTs: WallMs): Listening;
  /** Whether it is certain if the connector was listening then: it reported later, or has been silent for too long. */
  isKnownAt(connectorId: number, ts: number, nowTs: WallMs): boolean;
};

/** `keptMs`: how long gaps are remembered after their end. `silentMs`: the longest silence of a listening connector. */
function createHeardConnectors(keptMs: number, silentMs: number): HeardConnectors {
  const connectors = new Map<number, Heard>();
  let sinceTs = 0;

  function note(rows: HeardRow[]): void {
    // The clock was set back: the database cut gaps that lay ahead of it, and new gaps end before `sinceTs`.
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
      // Reads a little again, because two processes may write at once and a clock may be set back.
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

/** A connector that reports nothing for longer was not listening. */
const gapSeconds = unnoticedGapMs / 1_000;
/** How long gaps are kept: as long as the longest time that purposes can ask for. */
const keptDays = 31;

/** `from_at` and `to_at`: one of its gaps; null if it has none. */
type HeardRow = {
  connector_id: number;
  heard_at: number;
  from_at: number | null;
  to_at: number | null;
};

/**
 * Records that these connectors are listening now, by the service's time. If the last report is too old, also because
 * the clock was set forward, the time since then becomes a gap.
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
 * When each connector last listened, with each of its gaps that ended after `sinceTs` (ms), in order. `connectorId`:
 * only this one.
 */
async function listHeard(
  db: Sql,
  sinceTs: number,
  connectorId: number | null = null,
): Promise<HeardRow[]> {
  // One statement, so that a gap's end and the report that ended it are seen together.
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
 * When the connector of a device was listening from `sinceTs` on (ms), for a process without connectors; undefined if
 * its connector is not configured, which counts as listening. `leaderOf`: as for `startConnectorUptime`.
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

/** These devices, in a list for each connector. */
export async function groupByConnector(db: Sql, deviceIds: readonly number[]): Promise<number[][]> {
  const { rows } = await db.query<{ ids: number[] }>(
    `
      select json_agg(d.id) as ids
        from device d
        left join presence p on p.device_id = d.id
       where d.id = any($1::bigint[])
       group by coalesce(p.connector_id, d.connector_id)`,
    [deviceIds],
  );
  return rows.map(({ ids }) => ids);
}
