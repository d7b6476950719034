import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock.ts';

type PresenceChange = 'connected' | 'disconnected' | 'seen';

export type PresenceDeps = {
  db: Sql;
  /** The connector that devices are seen on. */
  connectorId: number;
  clock: Clock;
  /** A write failed; it is tried again with the next one. */
  onError: (error: unknown) => void;
  /** Between two writes of connects and disconnects. */
  writeIntervalMs?: number;
  /** Between two writes of when devices were last heard of. */
  seenIntervalMs?: number;
};

export type Presence = {
  /** Notes it; written a little later, many devices at once. */
  presence(device: { deviceId: number }, change: PresenceChange): void;
  /** Writes what is noted. */
  flush(): Promise<void>;
  /** Writes that nobody is connected here any more. */
  close(): Promise<void>;
};

/** Devices in one statement: to write more of them down at a stretch would take milliseconds. */
const savedAtOnce = 1_000;

/** What is known of a device here. `connections`: a device may have several. */
type Sighting = { connections: number; seenTs: number };

/** Keeps who is connected to this connector. What an earlier process left when it was killed is cleared. */
export async function startPresence(deps: PresenceDeps): Promise<Presence> {
  const { db, connectorId, clock, onError } = deps;
  const { writeIntervalMs = 1_000, seenIntervalMs = 30_000 } = deps;
  const sightings = new Map<number, Sighting>();
  let moved = new Set<number>();
  let seen = new Set<number>();
  let seenWrittenTs = clock();
  let writing = Promise.resolve();

  await clearConnected(db, connectorId);
  const timer = setInterval(() => {
    const due = clock() - seenWrittenTs >= seenIntervalMs;
    if (due || moved.size > 0) void write(due).catch(onError);
  }, writeIntervalMs);
  timer.unref();

  function presence({ deviceId }: { deviceId: number }, change: PresenceChange): void {
    const sighting = sightings.get(deviceId) ?? { connections: 0, seenTs: 0 };
    sightings.set(deviceId, sighting);
    sighting.seenTs = clock();
    if (change === 'seen') {
      seen.add(deviceId);
      return;
    }
    sighting.connections = Math.max(0, sighting.connections + (change === 'connected' ? 1 : -1));
    moved.add(deviceId);
  }

  /** One write at a time, so that an older one never comes last. */
  function write(withSeen: boolean): Promise<void> {
    const written = writing.then(() => writeNow(withSeen));
    writing = written.catch(() => {});
    return written;
  }

  async function writeNow(withSeen: boolean): Promise<void> {
    const deviceIds = new Set(withSeen ? [...moved, ...seen] : moved);
    moved = new Set();
    if (withSeen) {
      seen = new Set();
      seenWrittenTs = clock();
    }
    const changes = [...deviceIds].flatMap((deviceId) => {
      const sighting = sightings.get(deviceId);
      return sighting ? [{ deviceId, ...sighting }] : [];
    });
    try {
      for (let from = 0; from < changes.length; from += savedAtOnce)
        await saveSightings(db, connectorId, changes.slice(from, from + savedAtOnce));
    } catch (error) {
      moved = new Set([...moved, ...deviceIds]);
      throw error;
    }
    for (const deviceId of deviceIds) {
      const gone = sightings.get(deviceId)?.connections === 0;
      if (gone && !moved.has(deviceId) && !seen.has(deviceId)) sightings.delete(deviceId);
    }
  }

  async function close(): Promise<void> {
    clearInterval(timer);
    await write(true);
    await clearConnected(db, connectorId);
  }

  return { presence, flush: () => write(true), close };
}

async function clearConnected(db: Sql, connectorId: number): Promise<void> {
  await db.query('update presence set connected = false where connector_id = $1 and connected', [
    connectorId,
  ]);
}

async function saveSightings(
  db: Sql,
  connectorId: number,
  changes: { deviceId: number; connections: number; seenTs: number }[],
): Promise<void> {
  if (changes.length === 0) return;
  // A disconnect here must not undo a later connect at another connector. Devices of a bridge have no
  // connection that is seen: they are where they were heard last.
  await db.query(
    `
      insert into presence as p (device_id, connector_id, connected, last_seen_at)
      select d.id, $1, n.connected, ms_to_timestamp(n.seen_ts)
        from unnest($2::bigint[], $3::boolean[], $4::bigint[]) as n (device_id, connected, seen_ts)
        join device d on d.id = n.device_id
       order by d.id
      on conflict (device_id) do update
         set connected = case when excluded.connected or p.connector_id = $1
                              then excluded.connected else p.connected end,
             connector_id = case when excluded.connected then $1
                                 when p.connected then p.connector_id
                                 when excluded.last_seen_at >= coalesce(p.last_seen_at, '-infinity')
                                 then $1 else p.connector_id end,
             last_seen_at = greatest(p.last_seen_at, excluded.last_seen_at)`,
    [
      connectorId,
      changes.map(({ deviceId }) => deviceId),
      changes.map(({ connections }) => connections > 0),
      changes.map(({ seenTs }) => seenTs),
    ],
  );
}
