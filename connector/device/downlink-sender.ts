import type { ByteRoom } from '../../src/lib/byte-room.ts';
import type { DeviceIdentity, Downlink } from '../../src/contract/uplink.ts';
import type { DownTopic } from '../../src/contract/topic.ts';
import type { Log } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';

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
  room: ByteRoom;
};

/** `release`: called when it has left the queue, however. */
export type Waiting = Encoded & { message: Downlink; release: () => void };

/** Of these only the newest counts: an older one that still waits is overtaken. */
const newestOnly: DownTopic[] = ['profile', 'configuration', 'state', 'token'];

/** Sends a device what waits for it over one channel, one message after the other. */
export class DownlinkSender {
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
        'A delivery could not be noted: the message is sent again.',
      );
    });
  }
}
