import { randomUUID } from 'node:crypto';
import type { QueryConfig } from 'pg';
import pino from 'pino';
import { expect } from 'vitest';
import type { AlarmDecider } from '../../src/alarms/decide.ts';
import { type Bus, createLocalBus } from '../../src/bus/bus.ts';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import type { RecordedEvent } from '../../src/contract/event.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, Downlink, Uplink, UplinkContent } from '../../src/contract/uplink.ts';
import type { Database, Transaction } from '../../src/db/database.ts';
import type { ListWaitingSenses } from '../../src/ingest/device-state.ts';
import { startIngest } from '../../src/ingest/ingest.ts';
import type { Ingest } from '../../src/ingest/ingest.ts';
import type { EventQuotaOptions } from '../../src/ingest/event-quota.ts';
import type { ApplyLimits } from '../../src/ingest/rules/model.ts';
import type { RetryBounds } from '../../src/ingest/retry.ts';
import { createKnownMeanings } from '../../src/events/meanings.ts';
import { createKnownSeries } from '../../src/measurements/store.ts';
import { ringsOf, type Ringing } from './rings-of.ts';
import { openTestDatabase } from '../support/database.ts';

export {
  configuration,
  insertDevice,
  insertDevices,
  installOn,
  installProfile,
} from './devices.ts';

const dayMs = 86_400_000;

export const now = Date.UTC(2026, 0, 15, 12);

export type IngestProcess = {
  bus: Bus;
  ingest: Omit<Ingest, 'ingest'> & { ingest: ReturnType<typeof promised> };
  down: Downlink[];
  /** What people are notified of, and the signals to alarms, including those of failed transactions. */
  rings: Ringing[];
  signals: AlarmSignal[];
  /** How many transactions it has begun. */
  transactions: () => number;
  /** The devices whose rows each transaction wrote or locked. */
  tries: Set<number>[];
  close(): Promise<void>;
};

/** An aborted signal withdraws the message. */
function promised({ ingest }: Ingest, onArrival: (arrivedTs: number) => void) {
  return (device: DeviceIdentity, message: Uplink, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      onArrival(message.arrivedTs);
      ingest(device, message, {
        get isWithdrawn() {
          return signal.aborted;
        },
        stored: resolve,
        failed: reject,
      });
    });
}

export type ProcessOptions = {
  limits?: Partial<ApplyLimits>;
  eventQuota?: EventQuotaOptions;
  maxBatchItems?: number;
  maxRememberedBytes?: number;
  maxInFlight?: number;
  anotherAtMessages?: number;
  retry?: RetryBounds;
  listWaitingSenses?: ListWaitingSenses;
  clock?: () => number;
  /** Decides on alarms. Absent: nobody does, and the signals are collected. */
  alarms?: Pick<AlarmDecider, 'decide'>;
};

/** The statements that write or lock devices' rows, with the devices in their first parameter. */
const ofDevices = new Set([
  'ingest-states',
  'ingest-runtimes',
  'ingest-versions',
  'ingest-hold',
  'ingest-unchanged',
]);

/** Notes the devices whose rows the transaction writes or locks. */
function noting(tx: Transaction, devices: Set<number>): Transaction {
  const query = ((given: QueryConfig | string, values?: unknown[]) => {
    if (typeof given !== 'string' && ofDevices.has(given.name ?? ''))
      for (const id of String(given.values?.[0]).match(/\d+/g) ?? []) devices.add(Number(id));
    return typeof given === 'string' ? tx.query(given, values) : tx.query(given);
  }) as Transaction['query'];
  return {
    query,
    copyIn: (statement, bytes) => tx.copyIn(statement, bytes),
    copyOut: (statement, onRow) => tx.copyOut(statement, onRow),
  };
}

/** One process's ingest on the given database, with what it sent to devices. */
export function ingestProcess(
  url: string,
  {
    limits = {},
    eventQuota,
    maxBatchItems = 5_000,
    maxRememberedBytes = 268_435_456,
    maxInFlight = 2,
    anotherAtMessages = 1_000,
    retry,
    listWaitingSenses,
    clock: givenClock,
    alarms,
  }: ProcessOptions = {},
): IngestProcess {
  const clock = givenClock ?? Date.now;
  // Without a clock of its own, a message's arrival is also the time at which it is evaluated.
  let arrivedTs = -Infinity;
  const db = openTestDatabase(url, { maxConnections: 4, pipeline: true, keepPlans: true });
  let transactions = 0;
  const tries: Set<number>[] = [];
  const counted: Database = {
    ...db,
    transaction(work, options) {
      transactions += 1;
      const devices = new Set<number>();
      return db
        .transaction((tx) => work(noting(tx, devices)), options)
        .finally(() => {
          if (devices.size > 0) tries.push(devices);
        });
    },
  };
  const bus = createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
  const down: Downlink[] = [];
  const rings: Ringing[] = [];
  const signals: AlarmSignal[] = [];
  bus.subscribe('down', ({ message }) => down.push(message));
  const ingest = startIngest(
    {
      limits: {
        maxAheadMs: 300_000,
        nowTs: () => givenClock?.() ?? arrivedTs,
        measurementMaxAgeMs: 90 * dayMs,
        eventMaxAgeMs: 365 * dayMs,
        ringMaxAgeMs: 900_000,
        rejectionsPerMessage: 10,
        rejectionBytesPerDevice: 1_048_576,
        ...limits,
      },
      maxInFlight,
      anotherAtMessages,
      anotherAfterMs: 50,
      maxBatchItems,
      maxRememberedDevices: 10_000,
      maxRememberedBytes,
      retry,
    },
    {
      db: counted,
      bus,
      log: pino({ level: 'silent' }),
      knownSeries: createKnownSeries(),
      meanings: createKnownMeanings(clock),
      alarms: alarms ?? {
        async decide(tx, given) {
          const ringing = await ringsOf(tx, given);
          rings.push(...ringing);
          signals.push(...given);
          const byAccount = Map.groupBy(ringing, ({ device }) => device.accountId);
          return new Map([...byAccount].map(([accountId, its]) => [accountId, its.length]));
        },
      },
      listWaitingSenses,
      eventQuota,
      handOver: async () => {},
      clock,
      monotonicClock: () => performance.now(),
      newUuid: randomUUID,
      random: Math.random,
    },
  );
  const close = async () => {
    await ingest.close(1_000);
    await db.close();
  };
  return {
    ingest: { ...ingest, ingest: promised(ingest, (ts) => void (arrivedTs = ts)) },
    bus,
    down,
    rings,
    signals,
    transactions: () => transactions,
    tries,
    close,
  };
}

export function uplink(content: UplinkContent, arrivedTs: number = now): Uplink {
  return { topic: 'up/test', excerpt: 'as it came', arrivedTs, content, rejections: [] };
}

/** A message with measurements of one sense, given as [ts, val] pairs. */
export function measured(sId: string, ...points: [number, number][]): Uplink {
  const items = points.map(([ts, val], index) => ({ index, value: { sId, val, ts } }));
  return uplink({ kind: 'measurements', items });
}

export const forever = new AbortController().signal;

export async function storedValues(db: Database, device: DeviceIdentity): Promise<number[]> {
  const { rows } = await db.query<{ val: number }>(
    `select m.val
       from series s join measurement m on m.series_id = s.id
      where s.device_id = $1
      order by m.ts, s.s_id`,
    [device.deviceId],
  );
  return rows.map(({ val }) => val);
}

/** A purpose of one state, whose only event is recorded when 0x01 exceeds 20 `count` times in a row. */
export function countingPurpose(count: number, puId = 7): Purpose {
  const causes = [{ sId: '0x01', threshold: { count }, thresholds: { isGt: 20 } }];
  const event = { evId: 3, eventLog: true, causes };
  return Purpose.parse({ puId, initStId: 1, states: [{ stId: 1, events: [event] }] });
}

export async function recordedEvents(db: Database, device: DeviceIdentity) {
  const { rows } = await db.query<{ type: string; ts: number; body: RecordedEvent }>(
    'select type, ts, body from event where device_id = $1 order by seq',
    [device.deviceId],
  );
  return rows;
}

type RejectionRow = { reason: string; path: string | null; payload: string; more: number | null };

export async function rejections(db: Database, device: DeviceIdentity) {
  const { rows } = await db.query<RejectionRow>(
    `select reason, path, payload, more from rejection
      where device_id = $1 order by more is not null, item`,
    [device.deviceId],
  );
  return rows;
}

/** Waits until this many sessions wait for a lock that another holds. */
export async function waitForBlocked(db: Database, count = 1): Promise<void> {
  await expect
    .poll(async () => (await db.query('select from pg_locks where not granted')).rowCount)
    .toBeGreaterThanOrEqual(count);
}
