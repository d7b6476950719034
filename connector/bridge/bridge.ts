import { LRUCache } from 'lru-cache';
import {
  type DeviceIdentity,
  downPrefix,
  type DueTopic,
  findPublisher,
  type Uplink,
  upPrefix,
} from '../../src/contract/uplink.ts';
import { pause, waitAtMost, waitUntil } from '../../src/lib/wait.ts';
import { createDownlinkBudget, DownlinkQueue, type Encoded } from '../device/downlinks.ts';
import { createReceiver, type Receipt, type Sender } from '../device/receive.ts';
import { isGone, isUnavailableError, type Log, type Observer } from '../ports.ts';
import { createBrokerClient, createUnacknowledged } from './client.ts';
import type { BridgeOptions, BridgePorts, BridgeStatus, LeaseTerm } from './status.ts';
import type { MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';
import { atMost } from '../../src/lib/lru.ts';

export type Bridge = {
  /** Resolves when the devices are served, or after a while if the broker is still away. */
  ready: Promise<void>;
  /** Accepts nothing new. Messages under way are stored and acknowledged within `drainMs`, or not acknowledged. */
  close(options: { drainMs: number }): Promise<void>;
  /** Ends at once: nothing is read, acknowledged or published after this returns. */
  abandon(): void;
};

/** How many QoS 1 messages the broker sends ahead of their commit. These can share transactions. */
const maxUnacked = 2_000;
const maxUnackedBytes = 33_554_432;
/** How long the start waits for the first subscription. A broker that is away longer does not delay anything else. */
const patienceMs = 5_000;

/**
 * Serves the devices of an external MQTT 5 broker, as a member of a shared subscription (MQTT 5 section 4.8.2) or
 * alone. A message is acknowledged to the broker once it is committed, and a redelivery changes nothing.
 */
export function startBridge(
  options: BridgeOptions,
  ports: BridgePorts,
  { onServed = () => {}, onSilent = () => {} }: Partial<LeaseTerm> = {},
): Bridge {
  const { broker, maxPacketBytes, rejectionsPerMessage, log, now, status, observe } = options;
  const stopping = new AbortController();
  const { addIntake = () => () => {} } = options;
  let isDraining = false;
  const unacknowledged = createUnacknowledged(
    { maxMessages: maxUnacked * 2, maxBytes: maxUnackedBytes },
    ({ sinceMs }) => observe?.acknowledged((now() - sinceMs) / 1_000),
  );
  const endPausing = addIntake(unacknowledged.pause);
  const client = createBrokerClient({
    broker,
    maxPacketBytes,
    maxUnacked,
    now,
    status,
    onSubscribed: onServed,
    onSilent,
    onMessage(topic, payload, held, next) {
      // Never calls `next`: what is not taken is not acknowledged.
      if (isDraining) return;
      unacknowledged.hold(held);
      arrivals.accept(
        topic,
        payload,
        () => unacknowledged.settle(held),
        (err) => {
          unacknowledged.giveUp(held);
          if (isDraining) return;
          status.refused('not-stored');
          // Ingest logs once why a whole batch is not stored for now.
          if (!isUnavailableError(err))
            log.error(
              { event: 'message.not-stored', err, topic },
              'A message was not stored; the broker is asked to redeliver it.',
            );
          client.restart();
        },
      );
      unacknowledged.whenFree(next);
    },
    onClosed: unacknowledged.forgetOrder,
  });
  const downlinks = startBridgeDownlinks({ ports, log, publish: client.publish, now });
  const arrivals = createArrivals({
    ports,
    rejectionsPerMessage,
    log,
    now,
    status,
    observe: observe ?? { messages: new Map() },
    onHeard: downlinks.heard,
    stopping: stopping.signal,
  });
  client.connect();
  const { promise: ended, resolve: markEnded } = Promise.withResolvers<void>();

  async function waitForBroker(): Promise<void> {
    const isThere = await waitAtMost(Promise.race([client.subscribed, ended]), patienceMs);
    if (!isThere && status.read().reason === 'starting')
      status.disconnected({ brokerError: 'no-answer' });
  }

  function end(): void {
    endPausing();
    downlinks.end();
    stopping.abort();
    markEnded();
  }

  return {
    ready: waitForBroker(),
    async close({ drainMs }) {
      isDraining = true;
      client.stopListening();
      await waitUntil(() => unacknowledged.count() === 0, drainMs);
      end();
      await client.close();
    },
    abandon() {
      isDraining = true;
      client.abandon();
      end();
    },
  };
}

type BridgeDownlinksDeps = {
  ports: BridgePorts;
  log: Log;
  publish: (topic: string, payload: Buffer) => Promise<void>;
  /** A monotonic clock, ms. */
  now: MonotonicClock;
};

/** How many devices are remembered. One that was evicted is added again with its next message. */
const maxQueues = 20_000;
const maxQueued = 100;
const maxBytes = 33_554_432;
const askedAgainMs = 1_000;
/** How often to look for kept texts and commands while a device sends: it may have subscribed only now. */
const lookAgainMs = 10_000;

/**
 * Sends messages to devices behind the broker, which does not say who is connected there. Every bridge publishes
 * profiles and configurations, and the broker answers whether anybody subscribes. Other messages are published by
 * bridges that have received something from the device.
 */
function startBridgeDownlinks({ ports, log, publish, now }: BridgeDownlinksDeps) {
  const { bus } = ports;
  const queues = new LRUCache<string, DownlinkQueue>(atMost(maxQueues));
  /** When kept texts and commands were last looked for. Outlives a queue that ended because nobody subscribes. */
  const looked = new LRUCache<string, number>(atMost(maxQueues));
  const deps = { ports, log, maxQueued, budget: createDownlinkBudget(maxBytes) };

  function queueOf(device: DeviceIdentity): DownlinkQueue {
    const known = queues.get(device.uuid);
    if (known) return known;
    const queue = new DownlinkQueue(channelTo(device), deps);
    queues.set(device.uuid, queue);
    return queue;
  }

  function channelTo(device: DeviceIdentity) {
    const prefix = downPrefix(device.uuid);
    return {
      device,
      accepts: () => true,
      async send({ topic, body }: Encoded): Promise<void> {
        try {
          await publish(prefix + topic, body);
        } catch (error) {
          queues.delete(device.uuid);
          throw error;
        }
      },
    };
  }

  async function push(uuid: string, topic: DueTopic): Promise<void> {
    const device = await ports.identify(uuid);
    if (device) queueOf(device).due(topic);
  }

  function pushOrLog(uuid: string, topic: DueTopic): void {
    push(uuid, topic).catch((err: unknown) =>
      log.warn(
        { event: 'downlink.unread', err, device: uuid },
        'The messages due for a device could not be read.',
      ),
    );
  }

  const timer = setInterval(() => {
    for (const queue of queues.values()) queue.retry();
  }, askedAgainMs);
  const ends = [
    ports.onAccountDisabled((accountId) => {
      const its = [...queues.values()].filter(({ device }) => device.accountId === accountId);
      for (const queue of its) {
        queues.delete(queue.device.uuid);
        queue.end();
      }
    }),
    bus.subscribe('device', ({ uuid, push: topic }) => topic && pushOrLog(uuid, topic)),
    bus.subscribe('due', ({ uuid, topic }) => pushOrLog(uuid, topic)),
    bus.subscribe('down', ({ uuid, message }) => queues.get(uuid)?.push(message)),
    bus.subscribe('access', ({ uuid }) => void queues.delete(uuid)),
    bus.subscribe('resync', () => {
      for (const queue of queues.values()) {
        queue.due('profile');
        queue.due('configuration');
        queue.due('display');
        queue.due('command');
      }
    }),
  ];

  return {
    /** Something was received from the device, so this bridge publishes its messages. */
    heard(device: DeviceIdentity): void {
      const queue = queueOf(device);
      const monotonicMs = now();
      if (monotonicMs - (looked.get(device.uuid) ?? -Infinity) < lookAgainMs) return;
      looked.set(device.uuid, monotonicMs);
      queue.due('display');
      queue.due('command');
    },
    end(): void {
      clearInterval(timer);
      for (const end of ends) end();
      for (const queue of queues.values()) queue.end();
    },
  };
}

type ArrivalsDeps = {
  ports: Pick<BridgePorts, 'identify' | 'ingest' | 'presence' | 'clock' | 'throttle'>;
  rejectionsPerMessage: number;
  observe: Pick<Observer, 'messages'>;
  log: Log;
  now: MonotonicClock;
  status: Pick<BridgeStatus, 'refused'>;
  onHeard: (device: DeviceIdentity) => void;
  stopping: AbortSignal;
};

type Arrival = {
  topic: string;
  payload: Buffer;
  arrivedTs: WallMs;
  onStored: () => void;
  onFailed: (error: unknown) => void;
};

const ingestedAgainMs = 500;
/** The interval between log lines about devices that are not served. */
const logEveryMs = 10_000;

/** Carries messages from the broker to ingest, those of one device in the order in which they came. */
function createArrivals(deps: ArrivalsDeps) {
  const { ports, log, now, status, stopping } = deps;
  /** Messages of devices that are being looked up. */
  const waiting = new Map<string, Arrival[]>();
  const receive = createReceiver({ ...deps, deviceLimits: null });
  let loggedMs = -Infinity;

  async function lookUp(uuid: string): Promise<DeviceIdentity | null> {
    for (;;) {
      try {
        return await ports.identify(uuid);
      } catch (error) {
        if (!isUnavailableError(error) || stopping.aborted) throw error;
        await pause(ingestedAgainMs, stopping);
      }
    }
  }

  async function carryAll(uuid: string, arrivals: Arrival[]): Promise<void> {
    const found = await lookUp(uuid).then(
      (device) => ({ device }),
      (error: unknown) => ({ error }),
    );
    waiting.delete(uuid);
    for (const arrival of arrivals) {
      if ('error' in found) arrival.onFailed(found.error);
      else if (found.device) carry(found.device, arrival);
      else {
        status.refused('unknown-device');
        arrival.onStored();
      }
    }
    if ('device' in found && !found.device) tellOfUnknown(uuid);
  }

  /** Does not log each message: a whole fleet may go on publishing. The metrics have the count. */
  function tellOfUnknown(uuid: string): void {
    const monotonicMs = now();
    if (monotonicMs - loggedMs < logEveryMs) return;
    loggedMs = monotonicMs;
    log.info(
      { event: 'bridge.foreign-device', device: uuid },
      'The broker let in a device that does not exist or whose account is disabled, and the device published.',
    );
  }

  function carry(identity: DeviceIdentity, arrival: Arrival): void {
    const sender: Sender = { identity, upPrefix: upPrefix(identity.uuid), rates: null };
    receive(sender, arrival, new Carried(identity, arrival, deps));
  }

  return {
    /** Exactly one of the callbacks is called in the end. */
    accept(
      topic: string,
      payload: Buffer,
      onStored: () => void,
      onFailed: (error: unknown) => void,
    ): void {
      const uuid = findPublisher(topic);
      if (uuid === null) {
        status.refused('no-device-topic');
        return onStored();
      }
      const arrival = { topic, payload, arrivedTs: ports.clock(), onStored, onFailed };
      const before = waiting.get(uuid);
      if (before) return void before.push(arrival);
      const arrivals = [arrival];
      waiting.set(uuid, arrivals);
      void carryAll(uuid, arrivals);
    },
  };
}

/** A message that waits for its commit. Only a service that stops gives it up. */
class Carried implements Receipt {
  readonly #device: DeviceIdentity;
  readonly #arrival: Arrival;
  readonly #deps: Pick<ArrivalsDeps, 'ports' | 'onHeard' | 'stopping'>;

  constructor(
    device: DeviceIdentity,
    arrival: Arrival,
    deps: Pick<ArrivalsDeps, 'ports' | 'onHeard' | 'stopping'>,
  ) {
    this.#device = device;
    this.#arrival = arrival;
    this.#deps = deps;
  }

  get isWithdrawn(): boolean {
    return this.#deps.stopping.aborted;
  }

  accepts(uplink: Uplink): boolean {
    const { ports, onHeard } = this.#deps;
    // All devices share the broker's connection, on which acknowledgements keep their order [MQTT-4.6.0-2]: if one
    // account had to wait, all would. So its events are left out instead.
    if ((ports.throttle?.waitMs(this.#device.accountId) ?? 0) > 0) {
      uplink.leavesEventsOut = true;
      ports.throttle?.waits(this.#device, this.#arrival.topic);
    }
    onHeard(this.#device);
    ports.presence(this.#device, 'seen');
    return true;
  }

  stored(): void {
    this.#arrival.onStored();
  }

  failed(error: unknown): void {
    // The device was removed meanwhile: there is nothing left that the message could belong to.
    if (isGone(error)) this.stored();
    else this.#arrival.onFailed(error);
  }
}
