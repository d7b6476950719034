import type { DeviceIdentity, Downlink, DownTopic } from '../src/core/uplink.ts';
import { isUnavailable } from './failure.ts';
import type { Log } from './options.ts';
import type { ConnectorPorts } from './ports.ts';

/** A way to a device, whatever the protocol or broker in between. */
export type Channel = {
  device: DeviceIdentity;
  /** Whether messages of this topic reach the device now. */
  accepts(topic: DownTopic): boolean;
  /** Resolves when the device has it (acknowledged, or written at QoS 0); rejects when it is gone. */
  send(message: Downlink): Promise<void>;
};

export type DownlinkDeps = {
  ports: Pick<ConnectorPorts, 'subscribed' | 'due' | 'delivered'>;
  log: Log;
  maxQueued: number;
};

/** Of these only the newest counts: an older one that still waits is overtaken. */
const newestOnly: DownTopic[] = ['profile', 'configuration', 'state'];

/**
 * What is on its way to one device over one channel, one message in flight: aedes loses a QoS 1
 * message that another one to the same client overtakes (aedes#994). What matters is in the
 * database and is read again when the device subscribes; so a queue that is full loses its oldest.
 */
export class DownlinkQueue {
  readonly #channel: Channel;
  readonly #deps: DownlinkDeps;
  readonly #waiting: Downlink[] = [];
  #isSending = false;
  #isOver = false;
  /** Reading from the database, one after the other: an older answer never follows a newer one. */
  #loading: Promise<void> = Promise.resolve();
  /** Told to the device while a load is under way: newer than what it will bring. */
  #toldMeanwhile: Set<DownTopic> | null = null;
  readonly #owed = {
    subscribed: new Set<DownTopic>(),
    due: new Set<'profile' | 'configuration'>(),
  };

  constructor(channel: Channel, deps: DownlinkDeps) {
    this.#channel = channel;
    this.#deps = deps;
  }

  get device(): DeviceIdentity {
    return this.#channel.device;
  }

  /** The device has just subscribed to these topics. */
  subscribed(topics: DownTopic[]): void {
    for (const topic of topics) this.#owed.subscribed.add(topic);
    this.retry();
  }

  /** The device's newest profile or configuration is to be handed over. */
  due(topic: 'profile' | 'configuration'): void {
    if (!this.#channel.accepts(topic)) return;
    this.#owed.due.add(topic);
    this.retry();
  }

  /** A message that is in no table. */
  push(message: Downlink): void {
    this.#toldMeanwhile?.add(message.topic);
    this.#enqueue(message);
  }

  /** Reads once more what could not be read when it was asked for. */
  retry(): void {
    if (this.#owed.subscribed.size === 0 && this.#owed.due.size === 0) return;
    this.#loading = this.#loading.then(() => this.#load());
  }

  /** The channel is gone, and what waited with it. */
  end(): void {
    this.#isOver = true;
    this.#waiting.length = 0;
  }

  async #load(): Promise<void> {
    const { ports, log } = this.#deps;
    const { device } = this.#channel;
    const topics = [...this.#owed.subscribed];
    const due = [...this.#owed.due].filter((topic) => !topics.includes(topic));
    if (this.#isOver || (topics.length === 0 && due.length === 0)) return;
    this.#owed.subscribed.clear();
    this.#owed.due.clear();
    this.#toldMeanwhile = new Set();
    try {
      if (topics.length > 0) this.#enqueueLoaded(await ports.subscribed(device, topics));
      for (const topic of due) this.#enqueueLoaded(await ports.due(device, topic));
    } catch (error) {
      for (const topic of topics) this.#owed.subscribed.add(topic);
      for (const topic of due) this.#owed.due.add(topic);
      if (!isUnavailable(error))
        log.warn({ err: error, device: device.uuid }, 'what is due for a device could not be read');
    }
    this.#toldMeanwhile = null;
  }

  #enqueueLoaded(messages: Downlink[]): void {
    for (const message of messages)
      if (!this.#toldMeanwhile?.has(message.topic)) this.#enqueue(message);
  }

  #enqueue(message: Downlink): void {
    if (this.#isOver || !this.#channel.accepts(message.topic)) return;
    const waiting = this.#waiting;
    if (newestOnly.includes(message.topic)) {
      const older = waiting.findIndex(({ topic }) => topic === message.topic);
      if (older >= 0) waiting.splice(older, 1);
    }
    if (waiting.length >= this.#deps.maxQueued) waiting.shift();
    waiting.push(message);
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    for (let message = this.#waiting.shift(); message; message = this.#waiting.shift()) {
      if (!this.#channel.accepts(message.topic)) continue;
      try {
        await this.#channel.send(message);
      } catch {
        // The channel is gone; the next subscription brings everything anew.
        this.end();
        break;
      }
      if (message.pId !== undefined) this.#tellDelivered(message);
    }
    this.#isSending = false;
  }

  #tellDelivered(message: Downlink): void {
    const { ports, log } = this.#deps;
    ports.delivered(this.#channel.device, message).catch((error: unknown) => {
      log.warn({ err: error, device: this.#channel.device.uuid }, 'a delivery was not noted down');
    });
  }
}
