import type { IncomingMessage } from 'node:http';
import { ByteRoom } from '../lib/byte-room.ts';
import { LoopTurns } from '../lib/event-loop.ts';

export type RequestTurnsOptions = {
  /** The client's address, or its network. Asked for of those that wait only. */
  addressOf: (request: IncomingMessage) => string;
  /** What orchestrators ask: these have turns of their own at an address. */
  isVital: (path: string) => boolean;
  /** Requests that start in a turn of the event loop. */
  perTurn?: number;
  /** What arrives of larger bodies while they wait: of all, and a quarter of it of one address. */
  largeBytes?: number;
};

export type RequestTurns = {
  /** Runs `go`, at once or when its turn has come. False: what waits takes too much memory already, and it will not run. */
  start(request: IncomingMessage, go: () => void): boolean;
  countWaiting(): number;
};

/** A small multiple of a millisecond: so late are messages over MQTT, and each step of any other request. */
const usualPerTurn = 32;
const usualLargeBytes = 33_554_432;
/**
 * Each of so many that wait may ask again as soon as it is answered, and only to read that takes longer than anybody
 * should wait: they are answered at a pace that leaves half of the time to others.
 */
const crowd = 512;
const crowdPauseMs = 4;
/** As many as there may be connections can wait with smaller ones. */
const smallBytes = 16_384;
/** So much of a body arrives at most before its connection is read no further. */
const mostArriving = 131_072;

/**
 * A turn of the event loop reads from every connection that has something to read, and would start all of these
 * requests before anybody else is looked after. So a few start in a turn, and the others wait: addresses take turns,
 * and whoever asks at an address does, however many connections each of them has.
 */
export function createRequestTurns(options: RequestTurnsOptions): RequestTurns {
  const { addressOf, isVital, perTurn = usualPerTurn, largeBytes = usualLargeBytes } = options;
  const room = new ByteRoom({
    maxBytes: largeBytes,
    share: 1 / 4,
    maxWaiting: 0,
    maxWaitingOfKey: 0,
  });
  const turns = new LoopTurns({ perTurn, crowd: { size: crowd, pauseMs: crowdPauseMs } });

  function wait(request: IncomingMessage, go: () => void): boolean {
    const path = pathOf(request);
    const from = addressOf(request);
    const address = isVital(path) ? `${from} ${path}` : from;
    const bytes = arrivingBytes(request);
    const place = bytes > smallBytes ? room.enter(address, bytes) : undefined;
    if (place === null) return false;
    turns.wait({ address, who: whoOf(request) ?? path }, () => {
      place?.leave();
      go();
    });
    return true;
  }

  return {
    start(request, go) {
      if (!turns.takeNow()) return wait(request, go);
      go();
      return true;
    },
    countWaiting: () => turns.waiting,
  };
}

function arrivingBytes({ headers }: IncomingMessage): number {
  const isOpen = headers['transfer-encoding'] !== undefined;
  const announced = isOpen ? Infinity : Number(headers['content-length'] ?? 0);
  return Math.min(announced, mostArriving);
}

const pathOf = ({ url = '' }: IncomingMessage) => url.split('?', 1)[0] as string;

/** Of those behind one address, as they say themselves. */
const whoOf = ({ headers }: IncomingMessage) => headers.authorization ?? headers.cookie;
