import type {
  DeviceIdentity,
  Downlink,
  DownTopic,
  DueTopic,
  HandedCommand,
} from '../../src/contract/uplink.ts';
import { MemoryBudget, type Reservation } from '../../src/lib/fair-budget.ts';
import { type ConnectorPorts, isUnavailableError, type Log } from '../ports.ts';

/** More than the database keeps for a device. */
const remembered = 20;

/** The kept texts that a channel already has. A text read from the database may have been pushed before. */
class GivenDisplays {
  /** Null until the first text: most devices have no display. */
  #ids: number[] | null = null;

  /** Whether the channel has not had this message yet. From this call on it has. */
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
 * The messages on their way to one device over one channel, with one in flight: aedes loses a QoS 1 message if another
 * message to the same client overtakes it (aedes#994). Everything that matters is in the database and is read again
 * when the device subscribes, so a full queue may drop its oldest message.
 */
export class DownlinkQueue {
  readonly #channel: DownlinkChannel;
  readonly #deps: DownlinkDeps;
  readonly #sender: DownlinkSender;
  /** Loads run one after the other, so that an older answer never follows a newer one. */
  #loading: Promise<void> = Promise.resolve();
  /** Topics pushed while a load is under way: they are newer than what the load returns. */
  #sentMeanwhile: Set<DownTopic> | null = null;
  /** Kept texts that arrived before the older ones were read. */
  #textsMeanwhile: Downlink[] = [];
  readonly #given = new GivenDisplays();
  readonly #owed = { subscribed: new Set<DownTopic>(), due: new Set<DueTopic>() };

  constructor(channel: DownlinkChannel, deps: DownlinkDeps) {
    this.#channel = channel;
    this.#deps = deps;
    this.#sender = new DownlinkSender(channel, deps, (topic) => this.due(topic));
  }

  get device(): DeviceIdentity {
    return this.#channel.device;
  }

  subscribed(topics: DownTopic[]): void {
    for (const topic of topics) this.#owed.subscribed.add(topic);
    this.retry();
  }

  /** The device has a new profile, a new configuration or kept texts to read and send. */
  due(topic: DueTopic): void {
    if (!this.#channel.accepts(topic)) return;
    this.#owed.due.add(topic);
    this.retry();
  }

  /** Sends a message now. If the memory budget has no room for it, it is lost, as it would be in a full queue. */
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

  /** Whether older texts have yet to be read. */
  #readsTexts(): boolean {
    const { subscribed, due } = this.#owed;
    return this.#sentMeanwhile !== null || subscribed.has('display') || due.has('display');
  }

  /** Reads again what could not be read before. */
  retry(): void {
    if (this.#owed.subscribed.size === 0 && this.#owed.due.size === 0) return;
    this.#loading = this.#loading.then(() => this.#load());
  }

  /** The channel is gone. Drops what was waiting. */
  end(): void {
    this.#sender.end();
  }

  async #load(): Promise<void> {
    const { ports, log } = this.#deps;
    const { device } = this.#channel;
    if (this.#sender.isOver || this.#owed.subscribed.size + this.#owed.due.size === 0) return;
    const place = await enterToLoad(this.#deps.budget, device);
    // Too many devices wait for room. What is owed stays noted, and a later `retry` reads it.
    if (!place) return;
    const topics = [...this.#owed.subscribed];
    const due = [...this.#owed.due].filter((topic) => !topics.includes(topic));
    if (this.#sender.isOver) return place.leave();
    this.#owed.subscribed.clear();
    this.#owed.due.clear();
    this.#sentMeanwhile = new Set();
    // A subscription reads all texts again: those sent before may not have arrived.
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

  /** Enqueues what was read. Returns the reservation when the last message has left the queue. */
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

/** A way to a device, whatever the protocol or the broker in between. */
export type DownlinkChannel = {
  device: DeviceIdentity;
  /** Whether messages of this topic reach the device now. */
  accepts(topic: DownTopic): boolean;
  /** Whether this message may still be sent to this device; if not, it is skipped. Absent: all may. */
  fits?(message: Encoded): boolean;
  /** Resolves when the device has the message (acknowledged, or written at QoS 0). Rejects when the channel is gone. */
  send(message: Encoded): Promise<void>;
};

/** A message as it is written. Only these bytes wait, not the objects they were made of. */
export type Encoded = { topic: DownTopic; body: Buffer };

export type DownlinkDeps = {
  ports: Pick<ConnectorPorts, 'subscribed' | 'due' | 'delivered' | 'clock'>;
  log: Log;
  maxQueued: number;
  /** One budget for all devices: what is being read for them, and what waits for their acknowledgement. */
  budget: MemoryBudget;
};

/** `release`: called when the message has left the queue, for whatever reason. */
type Waiting = Encoded & { message: Downlink; release: () => void };

/** Topics of which only the newest message counts: it replaces an older one that still waits. */
const newestOnly: DownTopic[] = ['profile', 'configuration', 'state', 'token'];

/** Sends the messages that wait for a device over one channel, one after the other. */
class DownlinkSender {
  isOver = false;
  readonly #channel: DownlinkChannel;
  readonly #deps: DownlinkDeps;
  readonly #waiting: Waiting[] = [];
  readonly #onDue: (topic: DueTopic) => void;
  #isSending = false;
  /** Until the answer to the last command is not waited for any more. */
  #next: NodeJS.Timeout | undefined;

  /** `onDue`: more of a topic may be due. */
  constructor(channel: DownlinkChannel, deps: DownlinkDeps, onDue: (topic: DueTopic) => void) {
    this.#channel = channel;
    this.#deps = deps;
    this.#onDue = onDue;
  }

  /** Queues a message. If the queue is full, the oldest message is lost. */
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

  /** The channel is gone. Drops what was waiting. */
  end(): void {
    this.isOver = true;
    clearTimeout(this.#next);
    for (const { release } of this.#waiting.splice(0)) release();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) {
      const { message, release } = one;
      try {
        if (message.command) this.#continueAfter(message.command);
        if (!this.#mayLeave(one)) continue;
        await this.#channel.send(one);
      } catch {
        // The channel is gone. The next subscription reads everything again.
        this.end();
        break;
      } finally {
        release();
      }
      const { pId, keptId, command } = message;
      if (pId !== undefined || keptId !== undefined || command) this.#tellDelivered(message);
    }
    this.#isSending = false;
  }

  #mayLeave(one: Waiting): boolean {
    const { command } = one.message;
    if (command && command.expiresTs <= this.#deps.ports.clock()) return false;
    return this.#channel.accepts(one.topic) && this.#channel.fits?.(one) !== false;
  }

  /** Looks for the next command when the answer to this one is not waited for any more. */
  #continueAfter({ answerMs }: HandedCommand): void {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => this.#onDue('command'), answerMs + slackMs).unref();
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

/** The database's clock says when a command was handed over. */
const slackMs = 100;

/** What a message takes besides its bytes. */
const overheadBytes = 512;

/** How much a device has due is unknown before it is read. It is usually little: a load reserves this part. */
const loadsAtOnce = 32;

/** How many devices may wait for room to be read. Further ones are tried again a little later. */
const maxWaiting = 20_000;

/** The memory budget for messages to devices. One account may take a quarter. */
export function createDownlinkBudget(maxBytes: number): MemoryBudget {
  return new MemoryBudget({ maxBytes, share: 1 / 4, maxWaiting, maxWaitingOfKey: maxWaiting });
}

/** Waits for room to read what is due to a device. Null if too many devices wait already. */
export async function enterToLoad(
  budget: MemoryBudget,
  device: DeviceIdentity,
): Promise<Reservation | null> {
  const place = budget.enter(keyOf(device), budget.most / loadsAtOnce);
  await place?.entered;
  return place;
}

/** Null if there is no room now. */
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
