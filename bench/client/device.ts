import { connect, type Socket } from 'node:net';
import { createFrameReader } from './frames.ts';
import {
  disconnectNotice,
  encodeConnect,
  encodePuback,
  encodePublish,
  encodeString,
  encodeSubscribe,
  markRedelivered,
  pingRequest,
} from './packets.ts';

/** Who a device is and where it publishes. */
export type DeviceSpec = {
  clientId: string;
  username?: string;
  password?: string;
  topic: string;
  /** Subscribed with QoS 1 after every connect; what arrives is acknowledged at once. */
  subscriptions?: string[];
};

export type DeviceSettings = {
  host: string;
  port: number;
  keepaliveSeconds: number;
  /** QoS 1 messages sent and not acknowledged, at most. */
  inFlight: number;
};

/** What a device tells its fleet. Called synchronously, so a record made there is made before the send. */
export type DeviceHooks = {
  online: () => void;
  /** The connection ended, or was never made; `returnCode` of a CONNACK that refused it. */
  offline: (reason: string, returnCode?: number) => void;
  /** The next message to send, or null for nothing now. `seq` counts from 0 without gaps. */
  next: (seq: number) => Buffer | string | null;
  acknowledged: (seq: number, latencyMs: number) => void;
  received: (topic: string, payload: Buffer) => void;
};

export type Device = {
  open: () => void;
  /** Sends until the window is full or there is nothing more to send. Says how many went out. */
  fill: (atMost?: number) => number;
  ping: () => void;
  pending: () => number;
  isOnline: () => boolean;
  /** A clean DISCONNECT, or a reset as a lost link makes it. */
  close: (how: 'disconnect' | 'reset') => void;
};

type Sent = { seq: number; packet: Buffer; sentAtMs: number };

// One buffer serves all sockets: what is read is looked at before the next read.
const readBuffer = Buffer.allocUnsafe(64 * 1024);

/**
 * One device: a socket, a window of QoS 1 messages, and what it sent without an acknowledgement,
 * which it sends again, in order and marked, after it has been opened again.
 */
export function createDevice(
  spec: DeviceSpec,
  settings: DeviceSettings,
  hooks: DeviceHooks,
): Device {
  const topic = encodeString(spec.topic);
  const inFlight = new Map<number, Sent>();
  let socket: Socket | null = null;
  let online = false;
  let seq = 0;
  let packetId = 0;
  let refusedWith: number | undefined;

  function open(): void {
    refusedWith = undefined;
    const read = createFrameReader(onFrame);
    const opened = connect({
      host: settings.host,
      port: settings.port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (count) => {
          read(readBuffer.subarray(0, count));
          if (online) fill();
          return true;
        },
      },
    });
    socket = opened;
    let reason = 'closed by the server';
    opened.once('connect', () => {
      opened.write(encodeConnect({ ...spec, keepaliveSeconds: settings.keepaliveSeconds }));
    });
    opened.on('error', (error) => (reason = error.message));
    opened.once('close', () => {
      if (socket !== opened) return;
      socket = null;
      online = false;
      hooks.offline(reason, refusedWith);
    });
  }

  function onFrame(header: number, bytes: Buffer, start: number, end: number): void {
    switch (header >> 4) {
      case 2:
        return onConnack(bytes[start + 1] ?? 255);
      case 3:
        return onPublish(header, bytes, start, end);
      case 4:
        return onPuback(bytes.readUInt16BE(start));
      default:
      // SUBACK and PINGRESP change nothing.
    }
  }

  function onConnack(code: number): void {
    if (code !== 0) {
      refusedWith = code;
      socket?.end();
      return;
    }
    online = true;
    if (spec.subscriptions) socket?.write(encodeSubscribe(nextPacketId(), spec.subscriptions, 1));
    const again = [...inFlight.values()].map(({ packet }) => markRedelivered(packet));
    if (again.length > 0) socket?.write(Buffer.concat(again));
    hooks.online();
  }

  function onPublish(header: number, bytes: Buffer, start: number, end: number): void {
    const topicEnd = start + 2 + bytes.readUInt16BE(start);
    const confirmed = (header & 0x06) !== 0;
    const payload = Buffer.from(bytes.subarray(confirmed ? topicEnd + 2 : topicEnd, end));
    hooks.received(bytes.toString('utf8', start + 2, topicEnd), payload);
    if (confirmed) socket?.write(encodePuback(bytes.readUInt16BE(topicEnd)));
  }

  function onPuback(id: number): void {
    const sent = inFlight.get(id);
    // A second acknowledgement of one message: what it answers was settled by the first.
    if (!sent) return;
    inFlight.delete(id);
    hooks.acknowledged(sent.seq, performance.now() - sent.sentAtMs);
  }

  function fill(atMost = Infinity): number {
    if (!online || !socket) return 0;
    let count = 0;
    while (inFlight.size < settings.inFlight && count < atMost) {
      const payload = hooks.next(seq);
      if (payload === null) break;
      const id = nextPacketId();
      const packet = encodePublish(topic, id, payload);
      inFlight.set(id, { seq, packet, sentAtMs: performance.now() });
      seq += 1;
      count += 1;
      // Each in a write of its own, as a device sends what it has just measured.
      socket.write(packet);
    }
    return count;
  }

  function nextPacketId(): number {
    do packetId = (packetId % 65_535) + 1;
    while (inFlight.has(packetId));
    return packetId;
  }

  return {
    open,
    fill,
    ping: () => void (online && socket?.write(pingRequest())),
    pending: () => inFlight.size,
    isOnline: () => online,
    close(how) {
      if (how === 'reset') socket?.resetAndDestroy();
      else if (online && socket) {
        // A server that hangs does not close its side.
        const closing = socket.setTimeout(2_000, () => closing.destroy());
        closing.end(disconnectNotice());
      } else socket?.destroy();
    },
  };
}
