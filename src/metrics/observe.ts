import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { BridgeView } from '../../connector/bridge/status.ts';
import type { RateObserver } from '../../connector/device/limits.ts';
import type { HttpSnapshot } from '../../connector/http/server.ts';
import type { Observer } from '../../connector/ports.ts';
import type { SecretCheckDeps } from '../broker-hooks/broker-hooks.ts';
import type { Observe } from '../http/app.ts';
import type { IngestObserver } from '../ingest/after-commit.ts';
import type { TickObserver } from '../ingest/ticks.ts';
import type { NotificationsOptions } from '../notifications/notifications.ts';
import { version } from '../version.ts';
import { DurationHistogram } from './duration-histogram.ts';

/** Metrics of MQTT connectors and bridges. A device is never a label. */
export function observeConnector(registry: Registry): Observer {
  const registers = [registry];
  const connected = new Gauge({
    name: 'mqtt_connected_clients',
    help: 'Open device connections.',
    registers,
  });
  const connects = new Counter({
    name: 'mqtt_connects_total',
    help: 'Accepted connections.',
    registers,
  });
  const refusals = new Counter({
    name: 'mqtt_refusals_total',
    help: 'Refused connections, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const disconnects = new Counter({
    name: 'mqtt_disconnects_total',
    help: 'Ended connections, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const messages = countMessages(registry, {
    name: 'mqtt_messages_total',
    help: 'Messages received from devices over MQTT, by kind of topic.',
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
    messages,
    acknowledged: acknowledgements.observe.bind(acknowledgements),
  };
}

/** How devices' rates affected them, over all transports. */
export function observeRates(registry: Registry): RateObserver {
  const registers = [registry];
  const waits = new Counter({
    name: 'device_rate_waits_total',
    help: 'How often reading from or answering a device was paused because of its rates.',
    registers,
  });
  const beyond = new Counter({
    name: 'device_beyond_rates_total',
    help:
      'Messages and measurements accepted from devices beyond their rates while nobody else was ' +
      'waiting.',
    registers,
  });
  return { waited: () => waits.inc(), beyond: (amount) => beyond.inc(amount) };
}

/** Metrics of ingest; `depth` returns how many messages wait for their commit. */
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
    help: 'Time taken by a batch, including retries.',
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const stored = new Counter({
    name: 'ingest_measurements_total',
    help: 'Committed measurements, including redelivered ones.',
    registers,
  });
  const rejections = new Counter({
    name: 'ingest_rejections_total',
    help: 'Items recorded as rejections, by reason.',
    labelNames: ['reason'],
    registers,
  });
  new Gauge({
    name: 'ingest_queue_depth',
    help: 'Messages received but not yet committed.',
    registers,
    collect() {
      this.set(depth());
    },
  });
  return {
    batchMessages: sizes,
    batchSeconds: durations,
    measurements: stored,
    rejected: (reason, count) => rejections.inc({ reason }, count),
  };
}

/** Results of attempts to deliver messages. */
export function observeOutbox(registry: Registry): NonNullable<NotificationsOptions['onOutcome']> {
  const attempts = new Counter({
    name: 'notification_attempts_total',
    help: 'Attempts to deliver push messages, SMS, e-mail and webhooks, by result.',
    labelNames: ['kind', 'state'],
    registers: [registry],
  });
  return ({ kind, state }) => attempts.inc({ kind, state });
}

/** Requests to the broker's hooks without its secret, and clients that pretend to be bridges. */
export function observeHooks(registry: Registry): SecretCheckDeps['onRefused'] {
  const refusals = new Counter({
    name: 'broker_hook_refusals_total',
    help:
      'Requests to /connector/… without the right secret, and bridges without theirs: wrong, or ' +
      'no longer checked.',
    labelNames: ['reason'],
    registers: [registry],
  });
  return (reason) => refusals.inc({ reason });
}

/**
 * Counts devices' messages by kind of topic. This runs for every message, so the library is updated only when it is
 * read.
 */
function countMessages(
  registry: Registry,
  { name, help }: { name: string; help: string },
): Observer['messages'] {
  const messages: Observer['messages'] = new Map();
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
  return messages;
}

/** Buckets for times that devices wait, in seconds. */
const waitBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * How many accounts are `near` the end of each quota (at least 80 % of it, but not all, in use), or have `used-up` it.
 */
export function observeNearQuotas(
  registry: Registry,
): (counts: ReadonlyMap<string, Record<string, number>>) => void {
  const accounts = new Gauge({
    name: 'accounts_near_quota',
    help:
      'Accounts that use 80 % or more of a quota, by quota and level (near, used-up); updated ' +
      'every minute.',
    labelNames: ['quota', 'level'],
    registers: [registry],
  });
  return (counts) => {
    for (const [quota, levels] of counts)
      for (const [level, count] of Object.entries(levels)) accounts.set({ quota, level }, count);
  };
}

/** `countWaiting`: requests of accounts that wait for a database connection. */
export function observeShares(registry: Registry, countWaiting: () => number): void {
  new Gauge({
    name: 'database_requests_waiting',
    help: 'Requests that wait for a database connection because their account has used its share.',
    registers: [registry],
    collect() {
      this.set(countWaiting());
    },
  });
}

export type Metrics = {
  /** Where other parts register their metrics; never with a device as a label. */
  registry: Registry;
  observeHttp: Observe;
};

/** A registry with the process's own metrics and those of HTTP. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'build_info',
    help: 'Always 1; the labels name the running version and its Node version.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.versions.node }, 1);
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the first header to the answer, by documented path.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  return {
    registry,
    // Clients can send any method and path, so neither becomes a label unless a route answered.
    observeHttp: ({ method, route, status, seconds }) =>
      durations.observe({ method: route === '' ? '' : method, route, status }, seconds),
  };
}

/** Serves `/metrics` on a separate port. Rejects if it cannot listen there. */
export async function startMetrics(
  registry: Registry,
  { host, port }: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A bridge of this process. */
export type ObservedBridge = { connector: string; read: () => BridgeView };

/** The state of the bridges of this process, read on demand. Returns a function that adds a bridge. */
export function observeBridges(registry: Registry): (bridge: ObservedBridge) => void {
  const bridges: ObservedBridge[] = [];
  const gauge = (name: string, help: string, valueOf: (view: BridgeView) => number | null) =>
    new Gauge({
      name,
      help,
      labelNames: ['connector'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { connector, read } of bridges) {
          const value = valueOf(read());
          if (value !== null) this.set({ connector }, value);
        }
      },
    });
  gauge('bridge_connected', 'Whether the bridge is connected to its broker: 1 or 0.', (view) =>
    Number(view.isConnected),
  );
  gauge(
    'bridge_state_since_timestamp_seconds',
    'Since when the bridge has been connected or disconnected.',
    ({ sinceTs }) => sinceTs / 1_000,
  );
  gauge(
    'bridge_lease_held',
    'Whether this process is the one that should be connected; absent if bridges share the ' +
      'subscription.',
    ({ isLeaseHeld }) => (isLeaseHeld === null ? null : Number(isLeaseHeld)),
  );
  gauge(
    'bridge_last_message_in_timestamp_seconds',
    'When the last message arrived from the broker.',
    ({ lastInTs }) => (lastInTs === null ? null : lastInTs / 1_000),
  );
  gauge(
    'bridge_last_message_out_timestamp_seconds',
    'When the broker accepted the last message for a device.',
    ({ lastOutTs }) => (lastOutTs === null ? null : lastOutTs / 1_000),
  );
  new Gauge({
    name: 'bridge_disconnected',
    help: '1 for the reason why the bridge is not connected; absent while it is connected.',
    labelNames: ['connector', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { connector, read } of bridges) {
        const { reason } = read();
        if (reason !== null) this.set({ connector, reason }, 1);
      }
    },
  });
  new Counter({
    name: 'bridge_refused_total',
    help: 'Messages that were not accepted, by reason.',
    labelNames: ['connector', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { connector, read } of bridges)
        for (const [reason, count] of read().refused) this.inc({ connector, reason }, count);
    },
  });
  return (bridge) => void bridges.push(bridge);
}

/** `countWaiting`: requests that wait for a turn of the event loop. */
export function observeHttpQueue(registry: Registry, countWaiting: () => number): void {
  new Gauge({
    name: 'http_requests_waiting',
    help: 'Requests that have arrived but not started, because many arrived at once.',
    registers: [registry],
    collect() {
      this.set(countWaiting());
    },
  });
}

/** Metrics of devices over HTTP; `read` returns what is under way, and is called on demand. */
export function observeHttpUplink(
  registry: Registry,
  read: () => Pick<HttpSnapshot, 'polls'>,
): Pick<Observer, 'refused' | 'messages' | 'acknowledged'> {
  const registers = [registry];
  const messages = countMessages(registry, {
    name: 'http_uplink_messages_total',
    help: 'Messages received from devices over HTTP, by kind of topic.',
  });
  const answers = new DurationHistogram({
    name: 'http_uplink_answer_seconds',
    help:
      'Time from a message over HTTP to its answer, which follows its commit; excludes the wait ' +
      'for rates.',
    buckets: waitBuckets,
    registers,
  });
  const refusals = new Counter({
    name: 'http_uplink_refusals_total',
    help: 'Refused requests of devices, by reason.',
    labelNames: ['reason'],
    registers,
  });
  new Gauge({
    name: 'http_uplink_waiting_polls',
    help: 'Device requests waiting for messages.',
    registers,
    collect() {
      this.set(read().polls);
    },
  });
  return {
    refused: (reason) => refusals.inc({ reason }),
    messages,
    acknowledged: answers.observe.bind(answers),
  };
}

/** Metrics of evaluations that time alone triggers. */
export function observeTicks(registry: Registry): TickObserver {
  const registers = [registry];
  const ticks = new Counter({
    name: 'ticks_total',
    help: 'Evaluations triggered by time alone, by result.',
    labelNames: ['outcome'],
    registers,
  });
  const behind = new Gauge({
    name: 'ticks_behind_seconds',
    help: 'How long the oldest evaluation triggered by time has been due.',
    registers,
  });
  return {
    done: (outcome) => ticks.inc({ outcome }),
    behind: (seconds) => behind.set(seconds),
  };
}
