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

type Sent = { id: number; seq: number; packet: Buffer; sentAtMs: number };

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
  // Each where its packet identifier says, modulo their number: a Map would shrink and grow with every one.
  const inFlight = Array.from({ length: settings.inFlight }, (): Sent | null => null);
  let pending = 0;
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
    const again = inFlight.filter((sent) => sent !== null).sort((a, b) => a.seq - b.seq);
    if (again.length > 0)
      socket?.write(Buffer.concat(again.map(({ packet }) => markRedelivered(packet))));
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
    const place = id % inFlight.length;
    const sent = inFlight[place];
    // A second acknowledgement of one message: what it answers was settled by the first.
    if (sent?.id !== id) return;
    inFlight[place] = null;
    pending -= 1;
    hooks.acknowledged(sent.seq, performance.now() - sent.sentAtMs);
  }

  function fill(atMost = Infinity): number {
    if (!online || !socket) return 0;
    const packets: Buffer[] = [];
    while (pending < inFlight.length && packets.length < atMost) {
      const payload = hooks.next(seq);
      if (payload === null) break;
      const id = nextFreePacketId();
      const packet = encodePublish(topic, id, payload);
      inFlight[id % inFlight.length] = { id, seq, packet, sentAtMs: performance.now() };
      pending += 1;
      seq += 1;
      packets.push(packet);
    }
    // In one write: a system call for each would cost the client more than the broker's work.
    const [first] = packets;
    if (first) socket.write(packets.length === 1 ? first : Buffer.concat(packets));
    return packets.length;
  }

  /** With a place among those in flight; there must be one. */
  function nextFreePacketId(): number {
    for (;;) {
      const id = nextPacketId();
      if (inFlight[id % inFlight.length] === null) return id;
    }
  }

  function nextPacketId(): number {
    do packetId = (packetId % 65_535) + 1;
    while (inFlight[packetId % inFlight.length]?.id === packetId);
    return packetId;
  }

  return {
    open,
    fill,
    ping: () => void (online && socket?.write(pingRequest())),
    pending: () => pending,
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
