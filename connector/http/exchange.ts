import type { ServerResponse } from 'node:http';
import type {
  Delivery,
  DeviceIdentity,
  Outcome,
  TimeRequest,
  UplinkContent,
} from '../../src/contract/uplink.ts';
import { isRecognisedAgain } from '../device/parse-uplink.ts';
import type { Reservation } from '../../src/lib/byte-room.ts';
import { comeLater, HttpProblem, notFound, toProblem } from './problem.ts';

export type ExchangeDeps = {
  clock: () => number;
  /** Answers with a problem; the log has faults of our own. */
  refuse(exchange: Exchange, error: unknown): void;
  /** It was answered, or nobody waits for that any more and it need not be stored. */
  over(exchange: Exchange): void;
};

/** One message that came as a request, from its arrival to its answer, which follows the commit. */
export class Exchange implements Delivery {
  isWithdrawn = false;
  isOver = false;
  /** All of the message has arrived. */
  isWhole = false;
  /** Its client has gone: nobody is answered. */
  isGone = false;
  /** What it takes of the memory. */
  place: Pick<Reservation, 'leave'> | null = null;
  /** When it was handed on to be stored. */
  sinceMs = Infinity;
  /** What is to come back with the answer. */
  echo: TimeRequest['echo'];
  readonly device: DeviceIdentity;
  readonly response: ServerResponse;
  readonly #deps: ExchangeDeps;
  #content: UplinkContent | null = null;
  #outcome: Outcome | undefined;

  constructor(device: DeviceIdentity, response: ServerResponse, deps: ExchangeDeps) {
    this.device = device;
    this.response = response;
    this.#deps = deps;
  }

  settled(outcome: Outcome): void {
    this.#outcome = outcome;
  }

  stored(): void {
    if (this.isOver) return;
    if (this.isGone) return this.#end();
    const outcome = this.#outcome ?? { stored: 0, repeated: 0, rejected: [] };
    const problem = findProblem(outcome);
    if (problem) return this.refuse(problem);
    this.#end();
    sendOutcome(this.response, outcome, { timestamp: this.#deps.clock(), echo: this.echo });
  }

  failed(error: unknown): void {
    this.refuse(error);
  }

  /** Not stored in time: it need not be any more. */
  giveUp(): void {
    this.isWithdrawn = true;
    this.refuse(comeLater('This could not be stored in time: send it again.'));
  }

  /**
   * The connection has ended. (That the client ended its side of it, behind the request, is no end: it is answered.)
   * What arrived whole is stored all the same where a second copy would be recognised; else the client sends it again.
   */
  abandon(): void {
    this.isGone = true;
    if (!this.isWhole) this.#withdraw();
    else if (this.#content) this.parsed(this.#content);
  }

  /** What became of the message's body. */
  parsed(content: UplinkContent): void {
    this.#content = content;
    if (this.isGone && !isRecognisedAgain(content)) this.#withdraw();
  }

  #withdraw(): void {
    if (this.isOver) return;
    this.isWithdrawn = true;
    this.#end();
  }

  refuse(error: unknown): void {
    if (this.isOver) return;
    this.#end();
    this.#deps.refuse(this, toProblem(error) ?? error);
  }

  #end(): void {
    this.isOver = true;
    this.#deps.over(this);
  }
}

/** Where nothing could be read from a message that is kept as a rejection; null where something could. */
function findProblem({ stored, repeated, rejected }: Outcome): HttpProblem | null {
  const [first] = rejected;
  if (!first || stored + repeated > 0) return null;
  if (first.reason === 'unknown-topic') return notFound(first.message);
  const isUnreadable = rejected.every(({ reason }) => reason === 'invalid-json');
  const isWrongAsAWhole = first.reason === 'invalid-payload' && !first.path;
  if (!isUnreadable && !isWrongAsAWhole) return null;
  const errors = [{ path: first.path ?? '', message: first.message }];
  return new HttpProblem(400, 'invalid-input', first.message, { errors });
}

function sendOutcome(
  response: ServerResponse,
  { stored, repeated, rejected }: Outcome,
  { timestamp, echo }: { timestamp: number; echo: TimeRequest['echo'] },
): void {
  const said =
    rejected.length === 0
      ? '[]'
      : JSON.stringify(rejected.map(({ path = '', ...rest }) => ({ path, ...rest })));
  const more = echo === undefined ? '' : `,"echo":${JSON.stringify(echo)}`;
  const body = `{"stored":${stored},"repeated":${repeated},"rejected":${said},"timestamp":${timestamp}${more}}`;
  // Where nothing of the device's comes back all of it is ASCII, and need not be encoded.
  const isAscii = rejected.length === 0 && echo === undefined;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': isAscii ? body.length : Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  response.end(body, isAscii ? 'latin1' : 'utf8');
}
