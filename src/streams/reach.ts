import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { listAskedDevices, listFilteredDevices } from '../devices/select.ts';
import { refuseUnknown } from '../http/errors.ts';

/** Selects devices of an account. Absent members: any. `labels`: those with at least one of them; null: any. */
export type ReachFilter = {
  accountId: number;
  devices?: string[] | undefined;
  label?: string | undefined;
  labels: readonly string[] | null;
  /** The label's path in the request, for error messages; absent: the query's `label`. */
  labelPath?: string | undefined;
};

/** The devices that a stream covers, as they are now. */
export type Reach = {
  /** The same for equal filters. */
  key: string;
  accountId: number;
  /** Null: all devices of the account. */
  ids: () => ReadonlySet<number> | null;
  has: (deviceId: number) => boolean;
  /** Looks them up again. Throws `not-found` if none of the named devices is left. */
  refresh: () => Promise<void>;
};

/** Keeps the devices of filters up to date: labels are added and removed, devices too. */
export type Reaches = {
  /** Throws `not-found` with the named devices that do not exist. */
  open(filter: ReachFilter): Promise<{ reach: Reach; leave: () => void }>;
};

type Held = { reach: Reach; users: number; look: () => void };

/** Equal filters share one look-up, which is repeated when a label or a device of the account changes. */
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
    // Another stream may have looked it up meanwhile.
    return held.get(key) ?? { reach, users: 0, look: lookAgain(reach) };
  }
}

/** Runs one query at a time. Requests that arrive during a query share the next one. */
function lookAgain(reach: Reach): () => void {
  let isLooking = false;
  let isAsked = false;
  const look = async (): Promise<void> => {
    isLooking = true;
    do {
      isAsked = false;
      // The look-up at the next heartbeat meets the same failure, and ends the stream.
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
  /** Calls the listener for each account that the operator disables. Returns a function that unsubscribes. */
  onAccountDisabled: (listener: (accountId: number) => void) => () => void;
  /** How often `recheck` runs. */
  heartbeatMs: number;
};

export type ReaderRights = {
  accountId: number;
  /** The session's identifier, or the key's. */
  sessionId: string;
  /** Rejects once the reader may read no longer: its token ended, or the device belongs to somebody else. */
  recheck: () => Promise<unknown>;
  /** Aborts when the reader disconnects or the service stops. */
  signal: AbortSignal;
};

/** `until` aborts once the reader has gone or may read no longer. `release` ends the watch. */
type RightsWatch = { until: AbortSignal; release: () => void };

/** Watches whether a stream's reader may still read it. */
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
