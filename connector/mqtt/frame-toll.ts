import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';

export type TollOptions = {
  /** ms, of a clock that nobody sets. */
  now: () => number;
  /** A message may have so many bytes before it has ended. */
  maxMessageBytes: number;
  /** Told once. */
  onExceeded: () => void;
};

type Toll = { perSecond: number; burst: number };

/** Frames with less than four bytes of payload, and pings. */
const frames: Toll = { perSecond: 100, burst: 200 };
/** Bytes on the wire beyond the frames' due; a message that has not ended is among them. */
const bytes: Toll = { perSecond: 1_000, burst: 65_536 };
/** What a frame of four bytes takes on the wire, masked, for each of its bytes. */
const wireBytesAByte = 2.5;
const paidBytes = 4;

/**
 * Closes a WebSocket that sends many frames that carry little, or messages in fragments of little: MQTT never sees
 * empty frames and pings, so that none of its limits hold for them. Larger frames make good for smaller ones, as some
 * clients write a packet in several. Answers pings, which the socket is not to do by itself (`autoPong`).
 */
export function takeToll(
  { webSocket, socket }: { webSocket: WebSocket; socket: Socket },
  { now, maxMessageBytes, onExceeded }: TollOptions,
): void {
  const mayFrame = createToll(frames, now);
  const mayRead = createToll({ ...bytes, burst: bytes.burst + maxMessageBytes }, now);
  let isOver = false;
  const expect = (isAllowed: boolean) => {
    if (isAllowed || isOver) return !isOver;
    isOver = true;
    onExceeded();
    // What was read already is still taken apart: ten thousand frames, which nobody is to hear of any more.
    for (const event of ['message', 'ping', 'pong']) webSocket.removeAllListeners(event);
    webSocket.terminate();
    return false;
  };
  const takeFrame = (data: RawData): boolean => {
    const length = lengthOf(data);
    mayRead(-length * wireBytesAByte);
    return expect(mayFrame(1 - length / paidBytes));
  };
  webSocket.on('message', takeFrame);
  webSocket.on('ping', (data) => {
    if (takeFrame(data)) webSocket.pong(data);
  });
  webSocket.on('pong', takeFrame);
  socket.on('data', (chunk: Buffer) => expect(mayRead(chunk.length)));
}

/** Takes what something costs; gives whether there was so much left. What is earned beyond is not kept. */
export function createToll({ perSecond, burst }: Toll, now: () => number) {
  let owed = 0;
  let sinceMs = now();
  return (cost: number): boolean => {
    owed = Math.max(0, owed + cost);
    if (owed <= burst) return true;
    // The clock is read once a burst.
    const nowMs = now();
    owed = Math.max(0, owed - ((nowMs - sinceMs) * perSecond) / 1_000);
    sinceMs = nowMs;
    return owed <= burst;
  };
}

const lengthOf = (data: RawData): number =>
  Array.isArray(data) ? data.reduce((sum, { length }) => sum + length, 0) : data.byteLength;
