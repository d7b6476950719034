import { connect, type Socket } from 'node:net';
import type { Device, DeviceHooks, DeviceSettings, DeviceSpec } from './device-types.ts';
import { createFrameReader } from './frames.ts';
import { createInFlight } from './in-flight.ts';
import {
  disconnectNotice,
  encodeConnect,
  encodePuback,
  encodeString,
  encodeSubscribe,
  pingRequest,
  publishRoom,
  writePublish,
} from './packets.ts';

// One buffer serves all sockets: what is read is processed before the next read.
const readBuffer = Buffer.allocUnsafe(64 * 1024);

// Outgoing packets share buffers, each kept while a message in it is under way. An object for every packet would cost
// the client more than the packet.
let outgoing = Buffer.alloc(0);
let written = 0;

/**
 * One device: a socket, a window of QoS 1 messages, and the unacknowledged messages, which it sends again, in order and
 * marked, after it has been reopened.
 */
export function createDevice(
  spec: DeviceSpec,
  settings: DeviceSettings,
  hooks: DeviceHooks,
): Device {
  const topic = encodeString(spec.topic);
  const inFlight = createInFlight(settings.inFlight);
  let socket: Socket | null = null;
  let online = false;
  let seq = 0;
  let refusedWith: number | undefined;
  let readAtMs = 0;

  function open(): void {
    refusedWith = undefined;
    const read = createFrameReader(onFrame);
    const opened = connect({
      host: settings.host,
      port: settings.port,
      ...(settings.localAddress === undefined ? {} : { localAddress: settings.localAddress }),
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (count) => {
          readAtMs = performance.now();
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
        // MQTT 5: nothing of it was stored, so it counts as lost.
        if (end > start + 2 && (bytes[start + 2] as number) >= 0x80) return;
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
    if (spec.subscriptions)
      socket?.write(encodeSubscribe(inFlight.nextPacketId(), spec.subscriptions, 1, spec.version));
    const again = inFlight.unsettled();
    if (again.length > 0) socket?.write(Buffer.concat(again));
    hooks.online();
  }

  function onPublish(header: number, bytes: Buffer, start: number, end: number): void {
    const topicEnd = start + 2 + bytes.readUInt16BE(start);
    const confirmed = (header & 0x06) !== 0;
    let from = confirmed ? topicEnd + 2 : topicEnd;
    // Everything that the service sends has few properties: one byte is enough for their length.
    if (spec.version === 5) from += 1 + (bytes[from] as number);
    const payload = Buffer.from(bytes.subarray(from, end));
    hooks.received(bytes.toString('utf8', start + 2, topicEnd), payload);
    if (confirmed) socket?.write(encodePuback(bytes.readUInt16BE(topicEnd)));
  }

  function onPuback(id: number): void {
    const place = inFlight.settle(id);
    if (place) hooks.acknowledged(place.seq, readAtMs - place.sentAtMs);
  }

  function fill(atMost = Infinity): number {
    if (!online || !socket) return 0;
    const sentAtMs = performance.now();
    let from = written;
    let count = 0;
    while (!inFlight.isFull() && count < atMost) {
      const payload = hooks.next(seq);
      if (payload === null) break;
      const room = publishRoom(topic, payload);
      if (written + room > outgoing.length) {
        send(from);
        outgoing = Buffer.allocUnsafeSlow(Math.max(room, 64 * 1024));
        from = written = 0;
      }
      const place = inFlight.take();
      place.seq = seq;
      place.sentAtMs = sentAtMs;
      place.bytes = outgoing;
      place.from = written;
      written = writePublish(outgoing, written, topic, place.packetId, payload, spec.version);
      place.to = written;
      seq += 1;
      count += 1;
    }
    send(from);
    return count;
  }

  /** In one write: a system call per packet would cost the client more than the broker's work. */
  function send(from: number): void {
    if (written > from) socket?.write(outgoing.subarray(from, written));
  }

  return {
    open,
    fill,
    ping: () => void (online && socket?.write(pingRequest())),
    pending: inFlight.pending,
    isOnline: () => online,
    close(how) {
      // A socket that is shutting down because the server has left cannot be reset, and would never close.
      if (how === 'reset' && socket?.writableEnded) socket.destroy();
      else if (how === 'reset') socket?.resetAndDestroy();
      else if (online && socket) {
        // A server that hangs does not close its side.
        const closing = socket.setTimeout(2_000, () => closing.destroy());
        closing.end(disconnectNotice());
      } else socket?.destroy();
    },
  };
}
