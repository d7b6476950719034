import type { PresenceNotice, PresentDevice } from '../bus/bus.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock-readings.ts';

type PresenceChange = 'connected' | 'disconnected' | 'seen';

type PresenceDeps = {
  db: Sql;
  /** The connector that devices are seen on. */
  connectorId: number;
  clock: Clock;
  /** Told of who connected or left, once it is written. */
  tell: (accounts: PresenceNotice[]) => void;
  /** A write failed; it is tried again with the next one. */
  onError: (error: unknown) => void;
  /** Between two writes of connects and disconnects. */
  writeIntervalMs?: number;
  /** Between two writes of when devices were last heard of. */
  seenIntervalMs?: number;
};

type Seen = Pick<DeviceIdentity, 'deviceId' | 'uuid' | 'accountId'>;

export type PresenceRecorder = {
  /** Notes it; written a little later, many devices at once. */
  presence(device: Seen, change: PresenceChange): void;
  /** Writes what is noted. */
  flush(): Promise<void>;
  /** Writes that nobody is connected here any more. */
  close(): Promise<void>;
};

/** Devices in one statement: to write more of them down at a stretch would take milliseconds. */
const savedAtOnce = 1_000;

/** What is known of a device here. `connections`: a device may have several. */
type Sighting = { device: Seen; connections: number; seenTs: number };

/** Keeps who is connected to this connector. What an earlier process left when it was killed is cleared. */
export async function startPresence(deps: PresenceDeps): Promise<PresenceRecorder> {
  const { db, connectorId, clock, tell, onError } = deps;
  const { writeIntervalMs = 1_000, seenIntervalMs = 30_000 } = deps;
  const sightings = new Map<number, Sighting>();
  let moved = new Set<number>();
  let seen = new Set<number>();
  /** Heard of after a silence: written soon, or a list would call them silent for another half minute. */
  let back = new Set<number>();
  let seenWrittenTs = clock();
  let writing = Promise.resolve();

  await clear();
  const timer = setInterval(() => {
    const due = clock() - seenWrittenTs >= seenIntervalMs;
    if (due || moved.size > 0 || back.size > 0) void write(due).catch(onError);
  }, writeIntervalMs);
  timer.unref();

  function presence(device: Seen, change: PresenceChange): void {
    const { deviceId } = device;
    const known = sightings.get(deviceId);
    const sighting = known ?? { device, connections: 0, seenTs: 0 };
    sightings.set(deviceId, sighting);
    sighting.seenTs = clock();
    if (change === 'seen') {
      (known ? seen : back).add(deviceId);
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
    const movedIds = moved;
    const deviceIds = new Set([...moved, ...back, ...(withSeen ? seen : [])]);
    moved = new Set();
    back = new Set();
    if (withSeen) {
      seen = new Set();
      seenWrittenTs = clock();
    }
    const changes = [...deviceIds].flatMap((deviceId) => {
      const sighting = sightings.get(deviceId);
      return sighting ? [{ deviceId, ...sighting }] : [];
    });
    const saved: SavedSighting[] = [];
    try {
      for (let from = 0; from < changes.length; from += savedAtOnce) {
        const some = changes.slice(from, from + savedAtOnce);
        saved.push(...(await saveSightings(db, connectorId, some)));
      }
    } catch (error) {
      moved = new Set([...moved, ...movedIds]);
      back = new Set([...back, ...deviceIds]);
      throw error;
    }
    tellOf(saved.filter(({ deviceId }) => movedIds.has(deviceId)));
    if (withSeen) forgetSilent();
  }

  function forgetSilent(): void {
    const beforeTs = clock() - 2 * seenIntervalMs;
    for (const [deviceId, { connections, seenTs }] of sightings) {
      const isNoted = moved.has(deviceId) || seen.has(deviceId) || back.has(deviceId);
      if (connections === 0 && seenTs < beforeTs && !isNoted) sightings.delete(deviceId);
    }
  }

  function tellOf(saved: readonly SavedSighting[]): void {
    const notices = noticesOf(saved, (deviceId) => sightings.get(deviceId)?.device);
    if (notices.length > 0) tell(notices);
  }

  /** Of as many devices as one process held they are not named. */
  async function clear(): Promise<void> {
    const accountIds = await clearConnected(db, connectorId);
    if (accountIds.length > 0) tell(accountIds.map((accountId) => ({ accountId, devices: null })));
  }

  async function close(): Promise<void> {
    clearInterval(timer);
    await write(true);
    await clear();
  }

  return { presence, flush: () => write(true), close };
}

/** Nobody is connected at the connector. Gives the accounts whose devices were. */
async function clearConnected(db: Sql, connectorId: number): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>(
    `
      with cleared as (
        update presence set connected = false where connector_id = $1 and connected
        returning device_id
      )
      select distinct d.account_id as "accountId"
        from cleared
        join device d on d.id = cleared.device_id and d.account_id is not null`,
    [connectorId],
  );
  return rows.map(({ accountId }) => accountId);
}

/** Gives what stands there now: a device may be connected at another connector. */
async function saveSightings(
  db: Sql,
  connectorId: number,
  changes: { deviceId: number; connections: number; seenTs: number }[],
): Promise<SavedSighting[]> {
  if (changes.length === 0) return [];
  // A disconnect here must not undo a later connect at another connector. Devices of a bridge have no
  // connection that is seen: they are where they were heard last.
  const { rows } = await db.query<SavedSighting>(
    `
      insert into presence as p (device_id, connector_id, connected, last_seen_at)
      select d.id, $1, n.connected, ms_to_timestamp(n.seen_ts)
        from unnest($2::bigint[], $3::boolean[], $4::bigint[]) as n (device_id, connected, seen_ts)
        join device d on d.id = n.device_id and d.account_id is not null
       order by d.id
      on conflict (device_id) do update
         set connected = case when excluded.connected or p.connector_id = $1
                              then excluded.connected else p.connected end,
             connector_id = case when excluded.connected then $1
                                 when p.connected then p.connector_id
                                 when excluded.last_seen_at >= coalesce(p.last_seen_at, '-infinity')
                                 then $1 else p.connector_id end,
             last_seen_at = greatest(p.last_seen_at, excluded.last_seen_at)
      returning device_id as "deviceId", connected, connector_id as "connectorId",
                last_seen_at as "seenTs"`,
    [
      connectorId,
      changes.map(({ deviceId }) => deviceId),
      changes.map(({ connections }) => connections > 0),
      changes.map(({ seenTs }) => seenTs),
    ],
  );
  return rows;
}

/** A device's row of `presence`. */
type SavedSighting = Omit<PresentDevice, 'uuid'>;

/** Of an account: of more devices at once, each reader is told to ask again anyway. */
const namedAtOnce = 100;

/** What other processes are told of rows that were written, by account. */
function noticesOf(
  saved: readonly SavedSighting[],
  find: (deviceId: number) => { uuid: string; accountId: number } | undefined,
): PresenceNotice[] {
  const named = saved.flatMap((sighting) => {
    const device = find(sighting.deviceId);
    return device ? [{ sighting, device }] : [];
  });
  return [...Map.groupBy(named, ({ device }) => device.accountId)].map(([accountId, of]) => ({
    accountId,
    devices:
      of.length > namedAtOnce
        ? null
        : of.map(({ sighting, device: { uuid } }) => ({ ...sighting, uuid })),
  }));
}
