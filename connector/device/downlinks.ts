import type { DeviceIdentity, Downlink, DownTopic, DueTopic } from '../../src/contract/uplink.ts';
import { MemoryBudget, type Reservation } from '../../src/lib/memory-budget.ts';
import { type ConnectorPorts, isUnavailableError, type Log } from '../ports.ts';

/** More than are kept of a device. */
const remembered = 20;

/** Which kept texts a channel has had already: what is read from the database may have been pushed before. */
class GivenDisplays {
  /** Most devices have no display. */
  #ids: number[] | null = null;

  /** Whether the message is new to the channel, which has it from now on. */
  isNew({ keptId }: Downlink): boolean {
    if (keptId === undefined) return true;
    this.#ids ??= [];
    if (this.#ids.includes(keptId)) return false;
    if (this.#ids.push(keptId) > remembered) this.#ids.shift();
    return true;
  }

  forget(): void {
    this.#ids = null;
  }
}

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
    const place = enterNow(this.#deps.budget, this.#channel.device, body.length + overheadBytes);
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
    const place = await enterToLoad(this.#deps.budget, device);
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
          'The messages due for a device could not be read.',
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

/** A way to a device, whatever the protocol or broker in between. */
export type DownlinkChannel = {
  device: DeviceIdentity;
  /** Whether messages of this topic reach the device now. */
  accepts(topic: DownTopic): boolean;
  /** Whether it may be sent to this device, and is still of use; one that is not is left out. Absent: all are. */
  fits?(message: Encoded): boolean;
  /** Resolves when the device has it (acknowledged, or written at QoS 0); rejects when it is gone. */
  send(message: Encoded): Promise<void>;
};

/** A message as it is written: what waits takes its bytes, not what they were made of. */
export type Encoded = { topic: DownTopic; body: Buffer };

export type DownlinkDeps = {
  ports: Pick<ConnectorPorts, 'subscribed' | 'due' | 'delivered'>;
  log: Log;
  maxQueued: number;
  /** Of all devices: what is being read for them, and waits for their acknowledgement. */
  budget: MemoryBudget;
};

/** `release`: called when it has left the queue, however. */
type Waiting = Encoded & { message: Downlink; release: () => void };

/** Of these only the newest counts: an older one that still waits is overtaken. */
const newestOnly: DownTopic[] = ['profile', 'configuration', 'state', 'token'];

/** Sends a device what waits for it over one channel, one message after the other. */
class DownlinkSender {
  isOver = false;
  readonly #channel: DownlinkChannel;
  readonly #deps: DownlinkDeps;
  readonly #waiting: Waiting[] = [];
  #isSending = false;

  constructor(channel: DownlinkChannel, deps: DownlinkDeps) {
    this.#channel = channel;
    this.#deps = deps;
  }

  /** Sends it behind what waits; where that is too much, the oldest is lost. */
  enqueue(one: Waiting): void {
    if (this.isOver || !this.#channel.accepts(one.topic)) return one.release();
    const waiting = this.#waiting;
    if (newestOnly.includes(one.topic)) {
      const older = waiting.findIndex(({ topic }) => topic === one.topic);
      if (older >= 0) waiting.splice(older, 1)[0]?.release();
    }
    if (waiting.length >= this.#deps.maxQueued) waiting.shift()?.release();
    waiting.push(one);
    if (!this.#isSending) void this.#send();
  }

  /** The channel is gone, and what waited with it. */
  end(): void {
    this.isOver = true;
    for (const { release } of this.#waiting.splice(0)) release();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) {
      const { message, release } = one;
      try {
        if (!this.#channel.accepts(one.topic) || this.#channel.fits?.(one) === false) continue;
        await this.#channel.send(one);
      } catch {
        // The channel is gone; the next subscription brings everything anew.
        this.end();
        break;
      } finally {
        release();
      }
      if (message.pId !== undefined || message.keptId !== undefined) this.#tellDelivered(message);
    }
    this.#isSending = false;
  }

  #tellDelivered(message: Downlink): void {
    const { ports, log } = this.#deps;
    ports.delivered(this.#channel.device, message).catch((error: unknown) => {
      log.warn(
        { event: 'downlink.unnoted', err: error, device: this.#channel.device.uuid },
        'A delivery could not be recorded; the message will be sent again.',
      );
    });
  }
}

/** What a message takes beside its bytes. */
const overheadBytes = 512;

/** Before it is read nobody knows how much there is for a device: mostly little, at most about this part. */
const loadsAtOnce = 32;

/** Devices that wait until there is room to read for them; one more is looked at again a little later. */
const maxWaiting = 20_000;

/** Room for what goes down to devices; an account may take a quarter. */
export function createDownlinkBudget(maxBytes: number): MemoryBudget {
  return new MemoryBudget({ maxBytes, share: 1 / 4, maxWaiting, maxWaitingOfKey: maxWaiting });
}

/** Waits for room to read what is due to a device. Null where too many wait. */
export async function enterToLoad(
  budget: MemoryBudget,
  device: DeviceIdentity,
): Promise<Reservation | null> {
  const place = budget.enter(keyOf(device), budget.maxBytes / loadsAtOnce);
  await place?.entered;
  return place;
}

/** Null where there is no room at once. */
function enterNow(budget: MemoryBudget, device: DeviceIdentity, bytes: number): Reservation | null {
  const place = budget.enter(keyOf(device), bytes);
  if (place?.isIn) return place;
  place?.leave();
  return null;
}

function encode({ payload }: Downlink): Buffer {
  return Buffer.from(JSON.stringify(payload));
}

const keyOf = ({ accountId }: DeviceIdentity) => String(accountId);
