import type { PresenceNotice, PresentDevice } from '../bus/bus.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock-readings.ts';

type PresenceChange = 'connected' | 'disconnected' | 'seen';

type PresenceDeps = {
  db: Sql;
  /** The connector of this process. */
  connectorId: number;
  clock: Clock;
  /** Called with the devices that connected or disconnected, once that is stored. */
  tell: (accounts: PresenceNotice[]) => void;
  /** A write failed; the next one repeats it. */
  onError: (error: unknown) => void;
  /** Time between two writes of connects and disconnects. */
  writeIntervalMs?: number;
  /** Time between two writes of when devices were last heard. */
  seenIntervalMs?: number;
};

type Seen = Pick<DeviceIdentity, 'deviceId' | 'uuid' | 'accountId'>;

export type PresenceRecorder = {
  /** Records the change; it is written a little later, many devices at once. */
  presence(device: Seen, change: PresenceChange): void;
  /** Writes what was recorded. */
  flush(): Promise<void>;
  /** Writes that nobody is connected here any more. */
  close(): Promise<void>;
};

/** Devices in one statement: preparing more of them would block the event loop for milliseconds. */
const savedAtOnce = 1_000;

/** What this process knows of a device. A device may have several connections. */
type Sighting = { device: Seen; connections: number; seenTs: number };

/** Records who is connected to this connector. On start it clears connections that a killed process left. */
export async function startPresence(deps: PresenceDeps): Promise<PresenceRecorder> {
  const { db, connectorId, clock, tell, onError } = deps;
  const { writeIntervalMs = 1_000, seenIntervalMs = 30_000 } = deps;
  const sightings = new Map<number, Sighting>();
  let moved = new Set<number>();
  let seen = new Set<number>();
  /** Heard again after a silence. Written soon: lists would otherwise show them as silent for half a minute more. */
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

  /** Names no devices: one process may have had very many. */
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

/** Marks everybody as disconnected from the connector. Returns the accounts of those that were connected. */
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

/** Returns the resulting rows: a device may be connected to another connector. */
async function saveSightings(
  db: Sql,
  connectorId: number,
  changes: { deviceId: number; connections: number; seenTs: number }[],
): Promise<SavedSighting[]> {
  if (changes.length === 0) return [];
  // A disconnect here must not undo a later connect at another connector. Devices behind a bridge have no visible
  // connection: they belong to the connector that heard them last.
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

/** How many devices of an account a notice names; if there are more, readers are told to ask again. */
const namedAtOnce = 100;

/** The notices for other processes about rows that were written, by account. */
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
