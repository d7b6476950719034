import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { listAskedDevices, listFilteredDevices } from '../exports/list-devices.ts';
import { refuseUnknown } from '../http/errors.ts';

/** Which devices of an account. Absent: any. `labels`: those that have one of them; null: any. */
export type ReachFilter = {
  accountId: number;
  devices?: string[] | undefined;
  label?: string | undefined;
  labels: readonly string[] | null;
  /** Where the request has the label; `label` of a query if absent. */
  labelPath?: string | undefined;
};

/** Devices that a stream is about, as they are now. */
export type Reach = {
  /** Two that are alike have the same. */
  key: string;
  accountId: number;
  /** Null: all of the account. */
  ids: () => ReadonlySet<number> | null;
  has: (deviceId: number) => boolean;
  /** Looks again. Throws `not-found` where nothing is left of the devices that were named. */
  refresh: () => Promise<void>;
};

/** The devices of a filter, which change: a label is given and taken away, a device is removed. */
export type Reaches = {
  /** Throws `not-found` with the devices that were named and are not there. */
  open(filter: ReachFilter): Promise<{ reach: Reach; leave: () => void }>;
};

type Held = { reach: Reach; users: number; look: () => void };

/** Those of the same filter are looked up once, and again when a label or a device of the account changes. */
export function createReaches(db: Sql, bus: Bus): Reaches {
  const held = new Map<string, Held>();
  let ends: (() => void)[] = [];

  function listen(): void {
    const lookOf = (isMeant: (reach: Reach) => boolean) => {
      for (const { reach, look } of held.values()) if (isMeant(reach)) look();
    };
    ends = [
      bus.subscribe('labels', ({ accountId }) => lookOf((reach) => reach.accountId === accountId)),
      bus.subscribe('access', ({ deviceId }) => lookOf((reach) => reach.has(deviceId))),
      bus.subscribe('resync', () => lookOf(() => true)),
    ];
  }

  return {
    async open(filter) {
      const key = keyOf(filter);
      const found = held.get(key) ?? (await look(key, filter));
      if (held.size === 0) listen();
      held.set(key, found);
      found.users += 1;
      let hasLeft = false;
      return {
        reach: found.reach,
        leave() {
          if (hasLeft) return;
          hasLeft = true;
          found.users -= 1;
          if (found.users > 0) return;
          held.delete(key);
          if (held.size === 0) for (const end of ends) end();
        },
      };
    },
  };

  async function look(key: string, filter: ReachFilter): Promise<Held> {
    const reach = await findReach(db, key, filter);
    // Another one may have looked meanwhile.
    return held.get(key) ?? { reach, users: 0, look: lookAgain(reach) };
  }
}

/** However often it is asked: one query at a time, and one more where it was asked meanwhile. */
function lookAgain(reach: Reach): () => void {
  let isLooking = false;
  let isAsked = false;
  const look = async (): Promise<void> => {
    isLooking = true;
    do {
      isAsked = false;
      // What goes wrong is met by the next look at the heart-beat, which ends the stream.
      await reach.refresh().catch(() => undefined);
    } while (isAsked);
    isLooking = false;
  };
  return () => {
    isAsked = true;
    if (!isLooking) void look();
  };
}

function keyOf({ accountId, devices, label, labels }: ReachFilter): string {
  const names = [devices?.toSorted(), label, labels?.toSorted()];
  return JSON.stringify([accountId, ...names]);
}

async function findReach(db: Sql, key: string, filter: ReachFilter): Promise<Reach> {
  const { accountId, devices, label, labels, labelPath } = filter;
  if (!devices && label === undefined && labels === null)
    return { key, accountId, ids: () => null, has: () => true, refresh: async () => undefined };
  const filtered = { uuids: devices, label, labels };
  const first = await listAskedDevices(db, accountId, filtered, { labelPath });
  let ids: ReadonlySet<number> = new Set(first.map(({ id }) => id));
  return {
    key,
    accountId,
    ids: () => ids,
    has: (deviceId) => ids.has(deviceId),
    async refresh() {
      const now = await listFilteredDevices(db, accountId, filtered);
      ids = new Set(now.map(({ id }) => id));
      if (devices && label === undefined && now.length === 0) refuseUnknown(devices, now);
    },
  };
}

export type RightsDeps = {
  bus: Bus;
  /** Told of each account that the operator shuts out. Gives what ends that. */
  onAccountDisabled: (listener: (accountId: number) => void) => () => void;
  /** How often it is asked whether the reader may still read. */
  heartbeatMs: number;
};

export type ReaderRights = {
  accountId: number;
  /** Of a key its identifier. */
  sessionId: string;
  /** Rejects once the reader may read no longer: the token ended, the device is somebody else's. */
  recheck: () => Promise<unknown>;
  /** The reader has gone, or the service stops. */
  signal: AbortSignal;
};

/** Aborts once the reader has gone or may read no longer; `release` ends the watch. */
type RightsWatch = { until: AbortSignal; release: () => void };

/** Watches whether who reads a stream may still read it. */
export function watchRights(deps: RightsDeps, reader: ReaderRights): RightsWatch {
  const { accountId, sessionId, recheck, signal } = reader;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const forget = deps.bus.subscribe('revoked', (revoked) => {
    const isMeant = revoked.sessionId === undefined || revoked.sessionId === sessionId;
    if (revoked.accountId === accountId && isMeant) end();
  });
  const stayUnlessDisabled = deps.onAccountDisabled((disabled) => {
    if (disabled === accountId) end();
  });
  const timer = setInterval(() => void recheck().catch(end), deps.heartbeatMs);
  return {
    until: AbortSignal.any([signal, ended.signal]),
    release() {
      clearInterval(timer);
      forget();
      stayUnlessDisabled();
    },
  };
}
