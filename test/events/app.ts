import { pino } from 'pino';
import { type Bus, createLocalBus } from '../../src/bus/bus.ts';
import type { DeviceEvent, NewEvent, RecordedEvent, SenseEvent } from '../../src/contract/event.ts';
import type { Database } from '../../src/db/database.ts';
import { readHistoryKind } from '../../src/history/retention.ts';
import { DomainError } from '../../src/errors.ts';
import { findDeviceId } from '../../src/devices/queries.ts';
import { eventRoutes } from '../../src/events/routes.ts';
import { recordEvents } from '../../src/events/store.ts';
import { createReaches } from '../../src/streams/reach.ts';
import { createStreamCount, SubscriberBudget } from '../../src/streams/subscriber.ts';
import { createEventBroadcaster } from '../../src/events/stream.ts';
import { startHttp } from '../../src/http/server.ts';
import { createExports } from '../../src/quotas/exports.ts';
import { measurementRoutes } from '../../src/measurements/routes.ts';
import { insertAccount } from '../support/accounts.ts';
import { type DatabaseKind, testDatabase } from '../support/database.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

export type Device = { accountId: number; deviceId: number; uuid: string };
export type HistoryApp = Awaited<ReturnType<typeof startHistory>>;

export type HistoryOptions = {
  bus?: Bus;
  heartbeatMs?: number;
  patienceMs?: number;
  /** How many streams an account may have open; 20. */
  streams?: number;
  exports?: Partial<Parameters<typeof createExports>[0]>;
};

/** One process that serves the history of a database. An account's id is its bearer token. */
export async function startHistory(db: Database, options: HistoryOptions = {}) {
  const inner = options.bus ?? newBus();
  let openStreams = 0;
  const bus: Bus = {
    ...inner,
    subscribe(channel, listener) {
      const end = inner.subscribe(channel, listener);
      if (channel !== 'events') return end;
      openStreams += 1;
      return () => {
        openStreams -= 1;
        end();
      };
    },
  };
  const ended = new Set<string>();
  const findDevice = async (accountId: number, uuid: string) => {
    const id = await findDeviceId(db, accountId, uuid);
    if (id === null) throw new DomainError('not-found', 'There is no such device.');
    return id;
  };
  const authenticate = async (token: string) => {
    const accountId = Number(token);
    if (!accountId || ended.has(token)) throw new DomainError('unauthenticated', 'No such token.');
    return { accountId, accountUuid: '', sessionId: 'session' };
  };
  const exports = createExports({
    limitOf: () => 2,
    monotonicClock,
    ...options.exports,
  });
  const server = await startHttp({
    routes: [
      ...eventRoutes({
        ...options,
        db,
        bus,
        getDeviceId: findDevice,
        broadcaster: createEventBroadcaster({
          db,
          bus,
          heartbeatMs: options.heartbeatMs ?? 15_000,
          monotonicClock,
          budget: new SubscriberBudget(67_108_864),
        }),
        reaches: createReaches(db, bus),
        authenticate,
        exports,
        streams: createStreamCount(() => options.streams ?? 20),
        refusalPauseMs: 1,
      }),
      ...measurementRoutes({
        db,
        kind: await readHistoryKind(db),
        getDeviceId: findDevice,
        exports,
      }),
    ],
    authenticate,
    log: pino({ level: 'silent' }),
    clock: Date.now,
    host: '127.0.0.1',
    port: 0,
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    bus,
    exports,
    openStreams: () => openStreams,
    /** Tokens that are no longer valid. */
    ended,
    get: (path: string, accountId: number, headers: Record<string, string> = {}) =>
      fetch(path.startsWith('http') ? path : url + path, {
        headers: { authorization: `Bearer ${accountId}`, ...headers },
      }),
    async json(path: string, accountId: number): Promise<Record<string, unknown>> {
      const response = await this.get(path, accountId);
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as Record<string, unknown>;
    },
    close: () => server.close(),
  };
}

export type OwnHistory = Awaited<ReturnType<typeof openHistory>>;

/** The same with a database of its own, which is dropped on close. */
export async function openHistory(kind: DatabaseKind) {
  const database = await testDatabase(kind);
  const history = await startHistory(database.db);
  return {
    ...history,
    db: database.db,
    async close() {
      await history.close();
      await database.drop();
    },
  };
}

function newBus(): Bus {
  return createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
}

export async function newDevice(db: Database, ofAccount?: number): Promise<Device> {
  const accountId = ofAccount ?? (await insertAccount(db));
  const { rows } = await db.query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, configuration) values ($1, 1, '{}')
     returning id, uuid`,
    [accountId],
  );
  return { accountId, deviceId: rows[0]?.id ?? 0, uuid: rows[0]?.uuid ?? '' };
}

export function senseEvent(ts: number, ...sIds: string[]): SenseEvent {
  return {
    type: 'sense',
    ts,
    cause: {
      engine: { pId: 'p', puId: 1, stId: 2, evId: 3, ts },
      senses: sIds.map((sId) => ({ sId, val: 1.5, ts })),
    },
    notified: true,
  };
}

export function deviceEvent(ts: number): DeviceEvent {
  return {
    type: 'device',
    ts,
    event: 'purposeChanged',
    cause: { engine: { pId: 'p', puId: 1, stId: 2, evId: 3, ts } },
    newValue: 2,
    oldValue: 1,
  };
}

export function newEvent(device: Device, key: string, event: RecordedEvent): NewEvent {
  return { accountId: device.accountId, deviceId: device.deviceId, key, event };
}

/** Commits events and announces them as ingest does. */
export async function commitEvents(db: Database, bus: Bus, events: NewEvent[]): Promise<void> {
  await db.transaction((tx) => recordEvents(tx, events));
  bus.publish('events', {
    accountIds: [...new Set(events.map((e) => e.accountId))],
    deviceIds: [...new Set(events.map((e) => e.deviceId))],
  });
}

/** The address in `Link: <…>; rel="next"`. */
export function nextOf(response: Response): string | null {
  return /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1] ?? null;
}
