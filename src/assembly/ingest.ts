import { randomUUID } from 'node:crypto';
import { listWaitingSenses } from '../alarms/store.ts';
import type { AccountThrottle, Uplink } from '../contract/uplink.ts';
import type { Database } from '../db/database.ts';
import { states } from '../db/errors.ts';
import type { EventQuotaOptions } from '../ingest/event-quota.ts';
import { type Ingest, type IngestOptions, startIngest } from '../ingest/ingest.ts';
import type { ConnectorUptime } from '../connector-uptime/connector-uptime.ts';
import { startListeners } from '../live/listeners.ts';
import { createKnownMeanings } from '../events/meanings.ts';
import { createKnownSeries } from '../measurements/store.ts';
import { observeIngest } from '../metrics/observe.ts';
import type { Notifications } from '../notifications/notifications.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import {
  type Activity,
  createAccountThrottle,
  createEventCounters,
  startActivity,
  startStorageWatch,
} from '../quotas/activity.ts';
import { EventRate } from '../quotas/rates.ts';
import { diskFullText, type HealthCheck } from './lifecycle.ts';
import { startAlarms, startNotificationsOf } from './people.ts';
import type { Shared } from './shared.ts';
import type { WallMs } from '../lib/clock-readings.ts';

const dayMs = 86_400_000;
/** Two concurrent transactions, one of ticks, and the reads of devices for them. */
const ingestConnections = 5;
/** Longer than for requests: only messages wait for it, and they have nowhere else to go. */
const ingestConnectMs = 5_000;

/** Processes devices' messages, once for all connectors of the process. */
type Ingestion = { ingest: Ingest; throttle: AccountThrottle; outbox: Notifications };

/** Starts what stores devices' messages, notifies people of them, and counts them against quotas. */
export async function startIngestion(
  shared: Shared,
  { handOver }: Pick<Downlinks, 'handOver'>,
  runUuid: string,
  listening: Pick<ConnectorUptime, 'of'>,
): Promise<Ingestion> {
  const { log, disposables, bus, clock, monotonicClock, memory, metrics, limitsOf, health } =
    shared;
  const outbox = await startNotificationsOf(shared);
  const knownSeries = createKnownSeries();
  const meanings = createKnownMeanings(clock);
  const db = openIngestDb(shared, [knownSeries, meanings]);
  const activity = await startActivityOf(shared, runUuid);
  const rate = new EventRate(limitsOf, monotonicClock);
  const eventQuota = createEventCounters(activity, rate, limitsOf);
  const listeners = startListeners({ bus, monotonicClock });
  disposables.add('listeners', () => listeners.close());
  const alarms = startAlarms(shared, { outbox, eventsLeft: eventsLeftOf(eventQuota) });
  const ingest: Ingest = startIngest(optionsOf(shared, listening), {
    db,
    bus,
    log: log.child({ component: 'ingest' }),
    knownSeries,
    meanings,
    alarms,
    listWaitingSenses,
    eventQuota,
    clock,
    monotonicClock,
    newUuid: randomUUID,
    random: Math.random,
    handOver,
    listeners,
    observe: observeIngest(metrics.registry, () => ingest.depth()),
  });
  health.add('database-writes', checkStalled(ingest));
  memory.addCache(ingest.forget);
  shared.onClockMoved(ingest.forgetStamps);
  disposables.add('ingest', (drainMs) => ingest.close(drainMs));
  return { ingest, outbox, throttle: await startThrottleOf(shared, rate, ingest) };
}

/**
 * How long messages may wait while nothing is committed, ms. After that devices are disconnected
 * (`mqtt.storeTimeoutMs`).
 */
const longestWaitMs = 10_000;

/**
 * Detects messages that are stuck for any reason, such as a lock on a row. An account that has used its share of the
 * transactions delays nobody else. A commit that writes no row may succeed on a full disk, so a full disk is recognised
 * by what could not be stored.
 */
function checkStalled({ stalledMs, failure }: Pick<Ingest, 'stalledMs' | 'failure'>): HealthCheck {
  return async () => {
    if (failure() === states.diskFull) return { reason: 'disk-full', text: diskFullText };
    const waitMs = stalledMs();
    if (waitMs < longestWaitMs) return null;
    const text =
      'Messages of devices are waiting, but none of their transactions has been committed.';
    return { reason: 'messages-wait', text, details: { waitMs: Math.round(waitMs) } };
  };
}

function openIngestDb({ storage }: Shared, known: readonly { clear(): void }[]): Database {
  const db = storage.open(ingestConnections, {
    pipeline: true,
    keepPlans: true,
    connectTimeoutMs: ingestConnectMs,
  });
  // A new connection may lead to another server that took over without everything the previous one had.
  for (const each of known) db.pool.on('connect', each.clear);
  return db;
}

function optionsOf(
  { config, limitsOf, memory, kept, believed, clock }: Shared,
  listening: Pick<ConnectorUptime, 'of'>,
): IngestOptions {
  const { maxAheadMs, ringMaxAgeMs } = config.ingest;
  const { rejectionsPerMessage, rejectionBytesPerDevice } = config.quotas;
  return {
    limits: {
      maxAheadMs,
      nowTs: clock,
      ringMaxAgeMs,
      rejectionsPerMessage,
      rejectionBytesPerDevice,
      get measurementMaxAgeMs() {
        return kept.days().measurementsDays * dayMs;
      },
      get eventMaxAgeMs() {
        return kept.days().eventsDays * dayMs;
      },
      doubtSpanMs: believed.doubtSpanMs,
      sizesOf: limitsOf,
      listeningOf: ({ connectorId }) =>
        connectorId === undefined ? undefined : listening.of(connectorId),
    },
    maxInFlight: 2,
    anotherAtMessages: 1_000,
    anotherAfterMs: 50,
    maxBatchItems: 5_000,
    maxRememberedDevices: 100_000,
    maxRememberedBytes: memory.deviceBytes,
  };
}

/** Counts what accounts use of their quotas, and writes it from time to time. */
async function startActivityOf(
  { db, limitsOf, clock, log, disposables }: Shared,
  runUuid: string,
): Promise<Activity> {
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unwritten', err },
      'The usage of accounts could not be stored; the service will try again.',
    );
  const activity = await startActivity({ db, limitsOf, clock, runUuid, onError });
  disposables.add('use of quotas', () => activity.close());
  return activity;
}

/** How many alarms an account may still open now, by both quotas. */
function eventsLeftOf(quota: EventQuotaOptions): (accountId: number) => number {
  return (accountId) => Math.min(quota.eventsLeft(accountId), quota.eventsLeftNow(accountId));
}

/** Tells connectors whether an account's devices have to wait. */
async function startThrottleOf(
  { db, config, log, disposables, limitsOf, clock }: Shared,
  rate: EventRate,
  ingest: Pick<Ingest, 'ingest'>,
): Promise<AccountThrottle> {
  const { retention } = config;
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unestimated', err },
      'The storage used by accounts could not be estimated; the service will try again.',
    );
  const storage = await startStorageWatch({ db, limitsOf, retention, onError });
  disposables.add('estimates of storage', () => storage.close());
  return createAccountThrottle({
    rate,
    storage,
    clock,
    tellFull: (device, topic) => {
      const uplink = storageFull(topic, clock());
      // If it cannot be stored, only this notice is lost.
      ingest.ingest(device, uplink, { isWithdrawn: false, stored() {}, failed() {} });
    },
  });
}

// The same limit as for every rejection.
const maxTopicLength = 1_024;

function storageFull(topic: string, arrivedTs: WallMs): Uplink {
  const message =
    "The account's quota storedBytes is used up: its devices' messages wait, unacknowledged, " +
    'until there is room. Reported once a day.';
  const rejections = [{ reason: 'quota-exceeded' as const, message }];
  return {
    topic: topic.slice(0, maxTopicLength),
    excerpt: '',
    arrivedTs,
    content: { kind: 'none' },
    rejections,
  };
}
