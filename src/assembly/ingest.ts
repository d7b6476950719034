import { randomUUID } from 'node:crypto';
import { listWaitingSenses } from '../alarms/load.ts';
import type { AccountThrottle } from '../contract/uplink.ts';
import type { Database } from '../db/database.ts';
import { states } from '../db/errors.ts';
import { replaceConfigurations } from '../devices/queries.ts';
import { keepRejections } from '../devices/rejections.ts';
import { recordEvents } from '../events/record.ts';
import { startIngest } from '../ingest/ingest.ts';
import type { Ingest, IngestDeps, IngestOptions } from '../ingest/ingest.ts';
import type { ListeningWatch } from '../listening/listening.ts';
import { startListeners } from '../live/listeners.ts';
import { createKnownSeries } from '../measurements/series.ts';
import type { KnownSeries } from '../measurements/series.ts';
import { findNewest } from '../measurements/newest.ts';
import { addMeasurements, findStored, storeMeasurements } from '../measurements/store.ts';
import { observeIngest } from '../metrics/observe.ts';
import type { Notifications } from '../notifications/notifications.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import { keepDisplays } from '../profiles/kept-displays.ts';
import { saveProfileAnswers } from '../profiles/save-answers.ts';
import { createEventCounters } from '../quotas/activity.ts';
import { createEventRate } from '../quotas/event-rate.ts';
import { startAlarms } from './people.ts';
import { eventsLeftOf, startActivityOf, startHoldsOf } from './event-counters.ts';
import { startNotificationsOf } from './notifications.ts';
import { diskFullText, type HealthCheck } from './lifecycle.ts';
import type { Shared } from './shared.ts';

const dayMs = 86_400_000;
/** Two transactions beside each other, one of ticks, and what reads devices for them. */
const ingestConnections = 5;
/** Longer than for requests: only messages wait for it, and these cannot go elsewhere. */
const ingestConnectMs = 5_000;

/** What devices' messages come to, once for all connectors of the process. */
export type Ingestion = { ingest: Ingest; holds: AccountThrottle; outbox: Notifications };

/** Starts what stores devices' messages, what tells people of them, and what counts them against quotas. */
export async function startIngestion(
  shared: Shared,
  { handOver }: Pick<Downlinks, 'handOver'>,
  runUuid: string,
  listening: Pick<ListeningWatch, 'of'>,
): Promise<Ingestion> {
  const { log, releases, bus, clock, monotonicClock, memory, metrics, limitsOf, health } = shared;
  const outbox = await startNotificationsOf(shared);
  const knownSeries = createKnownSeries();
  const db = openIngestDb(shared, knownSeries);
  const activity = await startActivityOf(shared, runUuid);
  const rate = createEventRate(limitsOf, monotonicClock);
  const eventQuota = createEventCounters(activity, rate, limitsOf);
  const listeners = startListeners({ bus, monotonicClock });
  releases.add('listeners', () => listeners.close());
  const decideAlarms = startAlarms(shared, { outbox, eventsLeft: eventsLeftOf(eventQuota) });
  const ingest: Ingest = startIngest(optionsOf(shared, listening), {
    db,
    bus,
    log: log.child({ component: 'ingest' }),
    writers: { ...writersOf(shared, knownSeries), decideAlarms },
    findNewest,
    findStored,
    listWaitingSenses,
    eventQuota,
    clock,
    nowMs: monotonicClock,
    newUuid: randomUUID,
    random: Math.random,
    handOver,
    listeners,
    observe: observeIngest(metrics.registry, () => ingest.depth()),
  });
  health.add('database-writes', checkStalled(ingest));
  memory.addCache(ingest.forget);
  shared.onClockMoved(ingest.forgetStamps);
  releases.add('ingest', (drainMs) => ingest.close(drainMs));
  return { ingest, outbox, holds: await startHoldsOf(shared, rate, ingest) };
}

/** Messages that wait for so long while nothing is committed, ms: devices are disconnected then (`mqtt.storeTimeoutMs`). */
const longestWaitMs = 10_000;

/**
 * Whatever holds them up, such as a lock on a row. One account's share of the transactions holds up nobody else's. A commit
 * that writes no row may succeed on a disk that has no room for one, so a full disk is known by what could not be stored.
 */
function checkStalled({ stalledMs, failure }: Pick<Ingest, 'stalledMs' | 'failure'>): HealthCheck {
  return async () => {
    if (failure() === states.diskFull) return { reason: 'disk-full', text: diskFullText };
    const waitMs = stalledMs();
    if (waitMs < longestWaitMs) return null;
    const text =
      'Messages of devices wait, and none of their transactions has been committed meanwhile.';
    return { reason: 'messages-wait', text, details: { waitMs: Math.round(waitMs) } };
  };
}

function openIngestDb({ storage }: Shared, knownSeries: KnownSeries): Database {
  const db = storage.open(ingestConnections, {
    pipeline: true,
    keepPlans: true,
    connectTimeoutMs: ingestConnectMs,
  });
  // What answers now may be another server, which took over without all that was known of the one before.
  db.pool.on('connect', knownSeries.clear);
  return db;
}

function optionsOf(
  { config, limitsOf, memory, kept, believed }: Shared,
  listening: Pick<ListeningWatch, 'of'>,
): IngestOptions {
  const { maxAheadMs, ringMaxAgeMs } = config.ingest;
  const { rejectionsPerMessage, rejectionBytesPerDevice } = config.quotas;
  return {
    limits: {
      maxAheadMs,
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

/** What each feature writes within ingest's transaction. */
function writersOf(
  { config }: Shared,
  knownSeries: KnownSeries,
): Omit<IngestDeps['writers'], 'decideAlarms'> {
  const maxBytes = config.quotas.rejectionBytesPerDevice;
  return {
    addMeasurements: (tx, rows) => addMeasurements(tx, rows, knownSeries),
    storeMeasurements: (tx, rows, onAdded) => storeMeasurements(tx, rows, knownSeries, onAdded),
    recordEvents,
    keepRejections: (tx, rows) => keepRejections(tx, rows, { maxBytes }),
    settleProfiles: saveProfileAnswers,
    keepDisplays,
    replaceConfigurations,
  };
}
