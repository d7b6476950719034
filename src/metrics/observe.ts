import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { RateObserver } from '../../connector/device/rates.ts';
import type { Observer } from '../../connector/options.ts';
import type { SecretCheckDeps } from '../broker-hooks/broker-hooks.ts';
import { DurationHistogram } from './duration-histogram.ts';
import type { IngestObserver } from '../ingest/after-commit.ts';
import type { NotificationsOptions } from '../notifications/notifications.ts';

/** What connectors of MQTT and bridges count; a device is never a label. */
export function observeConnector(registry: Registry): Observer {
  const registers = [registry];
  const connected = new Gauge({
    name: 'mqtt_connected_clients',
    help: 'Connections of devices.',
    registers,
  });
  const connects = new Counter({
    name: 'mqtt_connects_total',
    help: 'Connections that were let in.',
    registers,
  });
  const refusals = new Counter({
    name: 'mqtt_refusals_total',
    help: 'Connections that were not let in, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const disconnects = new Counter({
    name: 'mqtt_disconnects_total',
    help: 'Connections that ended, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const message = countMessages(registry, {
    name: 'mqtt_messages_total',
    help: 'Messages from devices over MQTT, by kind of topic.',
  });
  const acknowledgements = new DurationHistogram({
    name: 'mqtt_acknowledgement_seconds',
    help: 'Time from the arrival of a message to its acknowledgement, which follows its commit.',
    buckets: waitBuckets,
    registers,
  });
  return {
    connected() {
      connected.inc();
      connects.inc();
    },
    refused: (reason) => refusals.inc({ reason }),
    disconnected(reason) {
      connected.dec();
      disconnects.inc({ reason });
    },
    message,
    acknowledged: acknowledgements.observe.bind(acknowledgements),
  };
}

/** What devices' rates did to them, of all transports. */
export function observeRates(registry: Registry): RateObserver {
  const registers = [registry];
  const waits = new Counter({
    name: 'device_rate_waits_total',
    help: 'Times that a device was not read, or not answered, for a while because of its rates.',
    registers,
  });
  const beyond = new Counter({
    name: 'device_beyond_rates_total',
    help: 'What devices brought beyond their rates while nobody else was there, in messages or measurements.',
    registers,
  });
  return { waited: () => waits.inc(), beyond: (amount) => beyond.inc(amount) };
}

/** What ingest counts; `depth` says how many messages wait for their commit. */
export function observeIngest(registry: Registry, depth: () => number): IngestObserver {
  const registers = [registry];
  const sizes = new Histogram({
    name: 'ingest_batch_messages',
    help: 'Messages that shared one transaction.',
    buckets: [1, 5, 10, 50, 100, 500, 1_000, 5_000],
    registers,
  });
  const durations = new Histogram({
    name: 'ingest_batch_seconds',
    help: 'Time a batch took, with everything that was tried again.',
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const stored = new Counter({
    name: 'ingest_measurements_total',
    help: 'Measurements committed, redelivered ones included.',
    registers,
  });
  const rejections = new Counter({
    name: 'ingest_rejections_total',
    help: 'Items that were kept as rejections, by reason.',
    labelNames: ['reason'],
    registers,
  });
  new Gauge({
    name: 'ingest_queue_depth',
    help: 'Messages that arrived and are not committed yet.',
    registers,
    collect() {
      this.set(depth());
    },
  });
  return {
    batch(messages, seconds) {
      sizes.observe(messages);
      durations.observe(seconds);
    },
    stored: (measurements) => stored.inc(measurements),
    rejected: (reason, count) => rejections.inc({ reason }, count),
  };
}

/** What became of attempts to deliver messages. */
export function observeOutbox(registry: Registry): NonNullable<NotificationsOptions['onOutcome']> {
  const attempts = new Counter({
    name: 'notification_attempts_total',
    help: 'Attempts to deliver push messages, SMS, e-mail and webhooks, by how they ended.',
    labelNames: ['kind', 'state'],
    registers: [registry],
  });
  return ({ kind, state }) => attempts.inc({ kind, state });
}

/** Requests to the broker's hooks that did not show its secret, and what called itself a bridge and is none. */
export function observeHooks(registry: Registry): SecretCheckDeps['onRefused'] {
  const refusals = new Counter({
    name: 'broker_hook_refusals_total',
    help: 'Requests to /connector/… without the right secret, and bridges without theirs: wrong, or not looked at any more.',
    labelNames: ['reason'],
    registers: [registry],
  });
  return (reason) => refusals.inc({ reason });
}

/** Counts devices' messages by kind of topic. With every message: the library is told when somebody asks. */
export function countMessages(
  registry: Registry,
  { name, help }: { name: string; help: string },
): (kind: string) => void {
  const messages = new Map<string, number>();
  new Counter({
    name,
    help,
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, count] of messages) this.inc({ kind }, count);
      messages.clear();
    },
  });
  return (kind) => void messages.set(kind, (messages.get(kind) ?? 0) + 1);
}

/** Bounds of what devices wait for, in seconds. */
export const waitBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** How many accounts are `near` the end of which quota (80 % of it and more, and not all, are in use), or have `used-up` it. */
export function observeNearQuotas(
  registry: Registry,
): (counts: ReadonlyMap<string, Record<string, number>>) => void {
  const accounts = new Gauge({
    name: 'accounts_near_quota',
    help: 'Accounts that use 80 % and more of a quota, by quota and by level (near, used-up); looked up every minute.',
    labelNames: ['quota', 'level'],
    registers: [registry],
  });
  return (counts) => {
    for (const [quota, levels] of counts)
      for (const [level, count] of Object.entries(levels)) accounts.set({ quota, level }, count);
  };
}

/** `countWaiting`: requests of accounts that wait for a connection to the database. */
export function observeShares(registry: Registry, countWaiting: () => number): void {
  new Gauge({
    name: 'database_requests_waiting',
    help: 'Requests of accounts that wait for a connection to the database, as their account has its share.',
    registers: [registry],
    collect() {
      this.set(countWaiting());
    },
  });
}
