import type { ServerResponse } from 'node:http';
import type { DeviceIdentity, Downlink } from '../../src/contract/uplink.ts';
import { acknowledged, writeAfter, type Given } from './down-after.ts';
import type { PollQuery } from './down-query.ts';

/** Errors that come while it is being looked for others; more are lost, as on a full queue. */
const maxErrors = 100;

/** A request that waits for messages to its device. Ten thousand of them have to be cheap. */
export class Poll {
  readonly device: DeviceIdentity;
  readonly topics: PollQuery['topics'];
  /** What the device has, and has acknowledged. */
  readonly given: Given;
  readonly response: ServerResponse;
  timer: NodeJS.Timeout | null = null;
  isOver = false;
  /** Its device counts as connected because of it. */
  isPresent = false;
  /** It is being read what is due. */
  isReading = false;
  /** Something fell due meanwhile. */
  isWoken = false;
  /** It has waited as long as it was to. */
  isLate = false;
  /** The device is to have its profile, also where it had it before. */
  isProfileAsked = false;
  /** Its client has ended its side: it is answered, and yet may be gone. */
  hasLeft = false;
  /** Messages that are in no table. */
  errors: Downlink[] | null = null;

  constructor(device: DeviceIdentity, { topics, given }: PollQuery, response: ServerResponse) {
    this.device = device;
    this.topics = topics;
    this.given = acknowledged(given);
    this.response = response;
  }

  addError(message: Downlink): void {
    this.errors ??= [];
    if (this.errors.length < maxErrors) this.errors.push(message);
  }

  /** Nobody waits for it any more. */
  end(): void {
    this.isOver = true;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** Answers a poll; no message: there was none within its time. */
export function sendMessages(
  { response }: Poll,
  messages: readonly Downlink[],
  given: Given,
  timestamp: number,
): void {
  if (response.headersSent || response.destroyed) return;
  const listed = messages.map(({ topic, payload }) => ({ topic, payload }));
  const body = Buffer.from(
    JSON.stringify({ messages: listed, after: writeAfter(given), timestamp }),
  );
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    'Cache-Control': 'no-store',
  });
  response.end(body);
}
