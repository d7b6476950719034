import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  DeviceIdentity,
  Outcome,
  TimeRequest,
  Uplink,
  UplinkContent,
} from '../../src/contract/uplink.ts';
import { MemoryBudget, type Reservation } from '../../src/lib/fair-budget.ts';
import { JoinedChunks } from '../../src/lib/request-body.ts';
import { waitAtMost } from '../../src/lib/wait.ts';
import { createLargeMessageBudget, type LargePlace } from '../device/large-messages.ts';
import type { DeviceLimits } from '../device/limits.ts';
import {
  createReceiver,
  isRecognisedAgain,
  type PayloadFormat,
  type RawMessage,
  type Receipt,
} from '../device/receive.ts';
import {
  type ConnectorLimits,
  type ConnectorPorts,
  type Log,
  mostMeasurementBytes,
  type Observer,
  type Tuning,
} from '../ports.ts';
import {
  comeLater,
  type HttpDevice,
  type HttpDevices,
  HttpProblem,
  longestDelayMs,
  notFound,
  type SendProblem,
  tooMany,
  toProblem,
} from './devices.ts';
import type { Clock, MonotonicClock } from '../../src/lib/clock-readings.ts';

/** A parsed payload takes about this many times its bytes. The payload itself is kept too. */
const parsedFactor = 4;
/** Limits the requests that wait for memory: each holds a connection. */
const waiting = { share: 1 / 4, maxWaiting: 1_000, maxWaitingOfKey: 250 };
const patienceMs = 5_000;
const fullSeconds = 3_600;

/** Takes what devices send by POST. */
export function createHttpUplink(deps: {
  ports: ConnectorPorts;
  devices: HttpDevices;
  deviceLimits: DeviceLimits;
  limits: Pick<ConnectorLimits, 'storeTimeoutMs' | 'rejectionsPerMessage'> &
    BodiesOptions['limits'];
  tuning: Pick<Tuning, 'maxUnackedTotalBytes' | 'maxBegunBytes' | 'messageOverheadBytes'> &
    BodiesOptions['tuning'];
  observe: Pick<Observer, 'messages' | 'acknowledged'>;
  log: Log;
  now: MonotonicClock;
  sendProblem: SendProblem;
}) {
  const { ports, devices, limits, tuning, observe, log, now, sendProblem } = deps;
  const budget = new MemoryBudget({ maxBytes: tuning.maxUnackedTotalBytes, ...waiting });
  const bodies = createBodies({
    limits,
    tuning,
    bodies: createBegunBodies(tuning.maxBegunBytes),
  });
  const { rejectionsPerMessage } = limits;
  const receive = createReceiver({ ...deps, rejectionsPerMessage });
  /** In the order in which they were handed to ingest. */
  const underWay = new Set<Exchange>();

  const exchangeDeps: ExchangeDeps = {
    clock: ports.clock,
    begin(exchange) {
      exchange.sinceMs = now();
      underWay.add(exchange);
    },
    over(exchange) {
      underWay.delete(exchange);
      if (exchange.isGone) exchange.place?.leave();
      if (exchange.isWithdrawn) ports.withdraw(exchange.device);
      else if (exchange.sinceMs < Infinity)
        observe.acknowledged((now() - exchange.sinceMs) / 1_000);
    },
    refuse({ response, device }, error) {
      if (!(error instanceof HttpProblem))
        log.error(
          { event: 'message.not-stored', err: error, device: device.uuid },
          'A message was not stored; its sender is told to send it again.',
        );
      const problem =
        error instanceof HttpProblem
          ? error
          : comeLater('The service could not store this: its log says why.');
      sendProblem(response, problem);
    },
  };

  /** Reads the message and hands it on. The answer follows by itself. Rejects with the problem to answer with. */
  async function post(
    request: IncomingMessage,
    response: ServerResponse,
    identity: DeviceIdentity,
    name: string,
  ): Promise<void> {
    if (request.method !== 'POST')
      throw new HttpProblem(405, 'method-not-allowed', 'Expected POST.', {
        headers: { Allow: 'POST' },
      });
    // The client left during the login. `close` has been emitted, so nothing would free its memory again.
    if (response.destroyed) return;
    const format = readFormat(request);
    bodies.check(request, name);
    const device = devices.of(identity);
    const waitMs = refuseBeyond(device, name);
    const exchange = new Exchange(identity, response, exchangeDeps);
    // `close` is emitted only once, so `on` saves the wrapper and the removal of `once`.
    response.on('close', () => {
      if (!exchange.isOver) exchange.abandon();
      if (exchange.isOver) exchange.place?.leave();
    });
    const arrived = takeArrivedBody(request, limits.maxPacketBytes);
    const body = arrived ?? (await bodies.read(request, { name, accountId: identity.accountId }));
    if (exchange.isOver) return;
    exchange.isWhole = true;
    const place = reserve(identity, body.length * parsedFactor + tuning.messageOverheadBytes);
    exchange.place = place;
    const isAtOnce = arrived !== null && place.isIn;
    if (!place.isIn) await waitUntilIn(place);
    if (exchange.isOver) return;
    const message: RawMessage = {
      topic: device.upPrefix + name,
      payload: body,
      arrivedTs: ports.clock(),
      format,
    };
    if (isAtOnce && waitMs === 0) return handOn(exchange, device, message);
    // Looks the device up again: it may have been forgotten while the body arrived, and a second object would have
    // rates of its own.
    const current = devices.of(identity);
    devices.enter(current, {
      sinceMs: now(),
      go: () => handOn(exchange, current, message),
      giveUp: (leftMs) => exchange.refuse(refusalOf(current, leftMs)),
    });
  }

  /** How long the device's message would wait, ms. Throws if that is too long. */
  function refuseBeyond(device: HttpDevice, name: string): number {
    const { identity } = device;
    const waitMs = devices.waitMs(device);
    if (waitMs === 0) return 0;
    const isFull = ports.throttle?.isFull?.(identity.accountId) ?? false;
    if (isFull) ports.throttle?.waits(identity, device.upPrefix + name);
    if (isFull || waitMs > longestDelayMs) throw refusalOf(device, waitMs);
    return waitMs;
  }

  function refusalOf({ identity }: HttpDevice, waitMs: number): HttpProblem {
    if (ports.throttle?.isFull?.(identity.accountId))
      return comeLater("The account's quota storedBytes is used up.", fullSeconds);
    if (waitMs === 0) return comeLater('The service is stopping: send it again.', 1);
    return tooMany('The device or its account sends faster than allowed.', waitMs);
  }

  function reserve({ accountId }: DeviceIdentity, bytes: number): Reservation {
    const place = budget.enter(String(accountId), bytes);
    if (!place) throw comeLater('Too many requests are waiting already: try again later.');
    return place;
  }

  async function waitUntilIn(place: Reservation): Promise<void> {
    await waitAtMost(place.entered, patienceMs);
    if (place.isIn) return;
    place.leave();
    throw comeLater('The service is overloaded: try again later.');
  }

  function handOn(exchange: Exchange, device: HttpDevice, message: RawMessage): void {
    if (exchange.isOver) return;
    devices.tellSeen(device);
    receive(device, message, exchange);
  }

  return {
    post,

    /** Gives up messages that were not stored in time. */
    giveUpLate(): void {
      const latestMs = now() - limits.storeTimeoutMs;
      for (const exchange of underWay) {
        if (exchange.sinceMs > latestMs) return;
        exchange.giveUp();
      }
    },

    giveUpAll(): void {
      for (const exchange of underWay) exchange.giveUp();
    },

    countUnderWay: () => underWay.size,
    bytes: () => budget.used + bodies.bytes(),
  };
}

type BodiesOptions = {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largePatienceMs'>;
  /** Bodies within the ordinary size. */
  bodies: BegunBodies;
};

/** Whose body is read. */
type BodyOf = { name: string; accountId: number };

/** A reserved body never makes way for others. */
const reserved: BegunBodies = { begin: () => ({ add() {}, end() {} }), bytes: () => 0 };

/** Reads bodies. Those of measurements may be larger; a large body is charged to its account before it is read. */
function createBodies({ limits, tuning, bodies }: BodiesOptions) {
  const budget = createLargeMessageBudget(tuning.maxLargeBytes);
  const mostOfMeasurements = mostMeasurementBytes(limits);
  const mostOf = (name: string) =>
    name === 'measurements' ? mostOfMeasurements : limits.maxPacketBytes;

  async function enter(accountId: number, bytes: number): Promise<LargePlace> {
    const { promise: entered, resolve } = Promise.withResolvers<void>();
    const place = budget.enter(accountId, bytes, resolve);
    if (!place.isIn) await waitAtMost(entered, tuning.largePatienceMs);
    if (place.isIn) return place;
    place.leave();
    throw comeLater('Other large bodies of this account are still arriving: try again later.');
  }

  return {
    /** Throws 413 if the announced body is larger than allowed. */
    check: (request: IncomingMessage, name: string): void => checkLength(request, mostOf(name)),

    /** Rejects as `readBody` does, and with 503 if a large body finds no room in time. */
    async read(request: IncomingMessage, { name, accountId }: BodyOf): Promise<Buffer> {
      const most = mostOf(name);
      // The length of a chunked body is unknown.
      const bytes = Number(request.headers['content-length'] ?? most);
      if (bytes <= limits.maxPacketBytes) return readBody(request, most, bodies);
      const place = await enter(accountId, bytes);
      try {
        if (request.destroyed)
          throw new HttpProblem(400, 'invalid-input', 'The request body ended early.');
        return await readBody(request, most, reserved);
      } finally {
        place.leave();
      }
    },

    bytes: () => bodies.bytes() + budget.bytes(),
  };
}

const formats = new Map<string, PayloadFormat>([
  ['', 'json'],
  ['application/json', 'json'],
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
]);

/** Throws 415 for any other type. A board that names no type sends JSON. */
function readFormat({ headers }: IncomingMessage): PayloadFormat {
  const { 'content-type': given = '', 'content-encoding': encoding = 'identity' } = headers;
  const known = formats.get(given);
  if (known !== undefined && encoding === 'identity') return known;
  const [type = '', ...parameters] = given.split(';').map((part) => part.trim().toLowerCase());
  const format = formats.get(type);
  const isUtf8 = parameters.every((one) => !one.startsWith('charset=') || utf8.test(one));
  if (format === undefined || !isUtf8)
    throw unsupported('Expected application/json or application/x-ndjson, in UTF-8.');
  if (encoding.toLowerCase() !== 'identity') throw unsupported('The body must not be compressed.');
  return format;
}

const utf8 = /^charset="?utf-?8"?$/;
const unsupported = (detail: string) => new HttpProblem(415, 'unsupported-type', detail);

/** Throws 413 if the announced body has more than `most` bytes. */
function checkLength({ headers }: IncomingMessage, most: number): void {
  if (Number(headers['content-length'] ?? 0) > most) throw tooLarge(most);
}

const tooLarge = (most: number) =>
  new HttpProblem(413, 'payload-too-large', `The body must have at most ${most} bytes.`);

/**
 * The body, if all of it has arrived, as that of a small message usually has: then there is nothing to wait for. Null
 * if more may follow, or if it has more than `most` bytes.
 */
function takeArrivedBody(request: IncomingMessage, most: number): Buffer | null {
  const announced = Number(request.headers['content-length']);
  if (announced === 0 || announced > most || request.readableLength !== announced) return null;
  const body = request.read() as Buffer | null;
  // Only then does Node see that the request has ended.
  request.resume();
  return body;
}

/** Reads the whole body. Rejects with 413 beyond `most` bytes, 503 if others need its memory, 400 if it ends early. */
function readBody(request: IncomingMessage, most: number, bodies: BegunBodies): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const joined = new JoinedChunks(most);
    const end = (): void => {
      begun.end();
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    const fail = (problem: HttpProblem): void => {
      end();
      joined.clear();
      reject(problem);
    };
    const begun = bodies.begin(() =>
      fail(comeLater('The body arrived slowly, and its memory was needed: send it again.')),
    );
    const onData = (chunk: Buffer): void => {
      if (!joined.fits(chunk)) return fail(tooLarge(most));
      begun.add(joined.add(chunk));
    };
    const onEnd = (): void => {
      end();
      resolve(joined.bytes);
    };
    const onClose = (): void =>
      fail(new HttpProblem(400, 'invalid-input', 'The request body ended early.'));
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

/** A body that has begun and not ended. */
type Begun = { bytes: number; giveUp: () => void };

type BegunBodies = {
  /** `giveUp`: called when its memory is needed for others. */
  begin(giveUp: () => void): BegunBody;
  bytes(): number;
};

type BegunBody = {
  /** This many more bytes have arrived. */
  add(bytes: number): void;
  end(): void;
};

/**
 * Limits the bytes of bodies that have begun and not ended. Beyond `maxBytes` the earliest body is given up. A body
 * that arrives at once is never that one, however many never end.
 */
function createBegunBodies(maxBytes: number): BegunBodies {
  const begun = new Set<Begun>();
  let bytes = 0;

  function end(one: Begun): void {
    if (begun.delete(one)) bytes -= one.bytes;
  }

  return {
    begin(giveUp) {
      const one: Begun = { bytes: 0, giveUp };
      return {
        add(more) {
          begun.add(one);
          one.bytes += more;
          bytes += more;
          for (const first of begun) {
            if (bytes <= maxBytes) return;
            end(first);
            first.giveUp();
          }
        },
        end: () => end(one),
      };
    },
    bytes: () => bytes,
  };
}

type ExchangeDeps = {
  clock: Clock;
  /** The exchange goes to ingest. */
  begin(exchange: Exchange): void;
  /** Answers with a problem, and logs faults of our own. */
  refuse(exchange: Exchange, error: unknown): void;
  /** The exchange was answered, or its client is gone and it need not be stored any more. */
  over(exchange: Exchange): void;
};

/** One message sent as a request, from its arrival to its answer, which follows the commit. */
class Exchange implements Receipt {
  isWithdrawn = false;
  isOver = false;
  /** The whole message has arrived. */
  isWhole = false;
  /** The client is gone, so nobody gets an answer. */
  isGone = false;
  /** Its reservation of memory. */
  place: Pick<Reservation, 'leave'> | null = null;
  /** When it was handed to ingest. */
  sinceMs = Infinity;
  /** A value to return with the answer. */
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

  /** It was not stored in time, and need not be stored any more. */
  giveUp(): void {
    this.isWithdrawn = true;
    this.refuse(comeLater('The service could not store this in time: send it again.'));
  }

  /**
   * The connection has ended. (A client that only ends its side after the request still gets its answer.) A message
   * that arrived whole is still stored if a second copy would be recognised. Otherwise the client sends it again.
   */
  abandon(): void {
    this.isGone = true;
    if (!this.isWhole) this.#withdraw();
    else if (this.#content && !isRecognisedAgain(this.#content)) this.#withdraw();
  }

  accepts(uplink: Uplink): boolean {
    const { content } = uplink;
    this.#content = content;
    if (this.isGone && !isRecognisedAgain(content)) this.#withdraw();
    if (this.isOver) return false;
    if (content.kind === 'time') {
      // The answer states the time, so ingest need not send it.
      this.echo = content.request.echo;
      uplink.content = { kind: 'none' };
    }
    this.#deps.begin(this);
    return true;
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

/** The problem, if nothing in the message could be read (it is stored as a rejection); null otherwise. */
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
  // Without text from the device the body is ASCII, and need not be encoded.
  const isAscii = rejected.length === 0 && echo === undefined;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': isAscii ? body.length : Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  response.end(body, isAscii ? 'latin1' : 'utf8');
}
