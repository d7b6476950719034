import type { DownTopic } from '../../src/contract/topic.ts';
import type { DeviceIdentity, Downlink, DueTopic } from '../../src/contract/uplink.ts';
import type { Reservation } from '../../src/lib/byte-room.ts';
import { isUnavailableError } from '../failure.ts';
import { encode, enterNow, enterToLoad, overheadBytes } from './downlink-room.ts';
import { type DownlinkChannel, type DownlinkDeps, DownlinkSender } from './downlink-sender.ts';
import { GivenDisplays } from './given-displays.ts';

/**
 * What is on its way to one device over one channel, one message in flight: aedes loses a QoS 1
 * message that another one to the same client overtakes (aedes#994). What matters is in the
 * database and is read again when the device subscribes; so a queue that is full loses its oldest.
 */
export class DownlinkQueue {
  readonly #channel: DownlinkChannel;
  readonly #deps: DownlinkDeps;
  readonly #sender: DownlinkSender;
  /** Reading from the database, one after the other: an older answer never follows a newer one. */
  #loading: Promise<void> = Promise.resolve();
  /** Topics sent to the device while a load is under way: newer than what it will bring. */
  #sentMeanwhile: Set<DownTopic> | null = null;
  /** Kept texts that came before the older ones were read. */
  #textsMeanwhile: Downlink[] = [];
  readonly #given = new GivenDisplays();
  readonly #owed = { subscribed: new Set<DownTopic>(), due: new Set<DueTopic>() };

  constructor(channel: DownlinkChannel, deps: DownlinkDeps) {
    this.#channel = channel;
    this.#deps = deps;
    this.#sender = new DownlinkSender(channel, deps);
  }

  get device(): DeviceIdentity {
    return this.#channel.device;
  }

  /** The device has just subscribed to these topics. */
  subscribed(topics: DownTopic[]): void {
    for (const topic of topics) this.#owed.subscribed.add(topic);
    this.retry();
  }

  /** The device's newest profile or configuration is to be handed over, or the texts that are kept for it. */
  due(topic: DueTopic): void {
    if (!this.#channel.accepts(topic)) return;
    this.#owed.due.add(topic);
    this.retry();
  }

  /** A message as it falls due. Where there is no room for it, it is lost as if the queue were full. */
  push(message: Downlink): void {
    if (this.#sender.isOver || !this.#channel.accepts(message.topic)) return;
    if (message.keptId !== undefined && this.#readsTexts()) {
      this.#textsMeanwhile.push(message);
      if (this.#textsMeanwhile.length > this.#deps.maxQueued) this.#textsMeanwhile.shift();
      return;
    }
    this.#sentMeanwhile?.add(message.topic);
    if (!this.#given.isNew(message)) return;
    const body = encode(message);
    const place = enterNow(this.#deps.room, this.#channel.device, body.length + overheadBytes);
    if (place)
      this.#sender.enqueue({ topic: message.topic, body, message, release: () => place.leave() });
  }

  /** Whether older texts than the one that comes are to be read yet. */
  #readsTexts(): boolean {
    const { subscribed, due } = this.#owed;
    return this.#sentMeanwhile !== null || subscribed.has('display') || due.has('display');
  }

  /** Reads once more what could not be read when it was asked for. */
  retry(): void {
    if (this.#owed.subscribed.size === 0 && this.#owed.due.size === 0) return;
    this.#loading = this.#loading.then(() => this.#load());
  }

  /** The channel is gone, and what waited with it. */
  end(): void {
    this.#sender.end();
  }

  async #load(): Promise<void> {
    const { ports, log } = this.#deps;
    const { device } = this.#channel;
    if (this.#sender.isOver || this.#owed.subscribed.size + this.#owed.due.size === 0) return;
    const place = await enterToLoad(this.#deps.room, device);
    // Too many wait to be read for: it is asked again.
    if (!place) return;
    const topics = [...this.#owed.subscribed];
    const due = [...this.#owed.due].filter((topic) => !topics.includes(topic));
    if (this.#sender.isOver) return place.leave();
    this.#owed.subscribed.clear();
    this.#owed.due.clear();
    this.#sentMeanwhile = new Set();
    // A subscription brings all of them again: what was sent before may not have arrived.
    if (topics.includes('display')) this.#given.forget();
    try {
      const loaded = topics.length > 0 ? await ports.subscribed(device, topics) : [];
      for (const topic of due) loaded.push(...(await ports.due(device, topic)));
      this.#enqueueLoaded(loaded, place);
    } catch (error) {
      place.leave();
      for (const topic of topics) this.#owed.subscribed.add(topic);
      for (const topic of due) this.#owed.due.add(topic);
      if (!isUnavailableError(error))
        log.warn(
          { event: 'downlink.unread', err: error, device: device.uuid },
          'What is due for a device could not be read.',
        );
    }
    this.#sentMeanwhile = null;
    for (const message of this.#textsMeanwhile.splice(0)) this.push(message);
  }

  /** The place is left with the last of them. */
  #enqueueLoaded(messages: Downlink[], place: Reservation): void {
    const wanted = messages.filter(
      (message) => !this.#sentMeanwhile?.has(message.topic) && this.#given.isNew(message),
    );
    let left = wanted.length;
    if (left === 0) return place.leave();
    const release = () => {
      if ((left -= 1) === 0) place.leave();
    };
    const encoded = wanted.map((message) => {
      return { topic: message.topic, body: encode(message), message, release };
    });
    place.resize(encoded.reduce((sum, { body }) => sum + body.length + overheadBytes, 0));
    for (const one of encoded) this.#sender.enqueue(one);
  }
}
