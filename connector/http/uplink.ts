import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  Delivery,
  DeviceIdentity,
  Outcome,
  TimeRequest,
  UplinkContent,
} from '../../src/contract/uplink.ts';
import { MemoryBudget, type Reservation } from '../../src/lib/memory-budget.ts';
import { JoinedChunks } from '../../src/lib/request-body.ts';
import { waitAtMost } from '../../src/lib/wait.ts';
import {
  createLargeMessageBudget,
  createUnknownMemberThrottle,
  isRecognisedAgain,
  type LargePlace,
  parseUplink,
  type PayloadFormat,
} from '../device/uplink.ts';
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
  sendProblem,
  tooMany,
  toProblem,
} from './devices.ts';
import type { Clock, MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';

type UplinkDeps = {
  ports: ConnectorPorts;
  devices: HttpDevices;
  limits: Pick<ConnectorLimits, 'storeTimeoutMs' | 'rejectionsPerMessage'> &
    BodiesOptions['limits'];
  tuning: Pick<Tuning, 'maxUnackedTotalBytes' | 'maxBegunBytes' | 'messageOverheadBytes'> &
    BodiesOptions['tuning'];
  observe: Pick<Observer, 'message' | 'acknowledged'>;
  log: Log;
  now: MonotonicClock;
};

/** Parsed, a payload takes about so many times its bytes; it is kept besides. */
const parsedFactor = 4;
/** Requests that wait for room: each holds a connection. */
const waiting = { share: 1 / 4, maxWaiting: 1_000, maxWaitingOfKey: 250 };
const patienceMs = 5_000;
const fullSeconds = 3_600;

/** Takes what devices send with POST. */
export function createHttpUplink(deps: UplinkDeps) {
  const { ports, devices, limits, tuning, observe, log, now } = deps;
  const budget = new MemoryBudget({ maxBytes: tuning.maxUnackedTotalBytes, ...waiting });
  const bodies = createBodies({
    limits,
    tuning,
    bodies: createBegunBodies(tuning.maxBegunBytes),
  });
  const mayTellNow = createUnknownMemberThrottle(now);
  /** In the order in which they were handed on. */
  const underWay = new Set<Exchange>();

  const exchangeDeps: ExchangeDeps = {
    clock: ports.clock,
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
      void sendProblem(response.req, response, problem, ports.clock());
    },
  };

  /** Reads the message and hands it on; the answer follows by itself. Rejects with what is answered instead. */
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
    // It left while it was let in: nothing would tell that its place is free again.
    if (response.destroyed) return;
    const format = readFormat(request);
    bodies.check(request, name);
    refuseBeyond(devices.of(identity), name);
    const exchange = new Exchange(identity, response, exchangeDeps);
    // It is emitted once: without `once` there is nothing to wrap, and to remove.
    response.on('close', () => {
      exchange.abandon();
      if (exchange.isOver) exchange.place?.leave();
    });
    const body =
      takeArrivedBody(request, limits.maxPacketBytes) ??
      (await bodies.read(request, { name, accountId: identity.accountId }));
    if (exchange.isOver) return;
    exchange.isWhole = true;
    const place = takeRoom(identity, body.length * parsedFactor + tuning.messageOverheadBytes);
    exchange.place = place;
    if (!place.isIn) await waitForRoom(place);
    if (exchange.isOver) return;
    const arrivedTs = ports.clock();
    // The one of before may have been forgotten while the body came: it would be a second one, with rates of its own.
    const device = devices.of(identity);
    devices.enter(device, {
      sinceMs: now(),
      go: () => handOn(exchange, device, { name, body, format, arrivedTs }),
      giveUp: (waitMs) => exchange.refuse(refusalOf(device, waitMs)),
    });
  }

  function refuseBeyond(device: HttpDevice, name: string): void {
    const { identity } = device;
    const waitMs = devices.waitMs(device);
    if (waitMs === 0) return;
    const isFull = ports.throttle?.isFull?.(identity.accountId) ?? false;
    if (isFull) ports.throttle?.waits(identity, device.upPrefix + name);
    if (isFull || waitMs > longestDelayMs) throw refusalOf(device, waitMs);
  }

  function refusalOf({ identity }: HttpDevice, waitMs: number): HttpProblem {
    if (ports.throttle?.isFull?.(identity.accountId))
      return comeLater("The account's quota storedBytes is used up.", fullSeconds);
    if (waitMs === 0) return comeLater('The service is stopping: send it again.', 1);
    return tooMany('The device or its account sends faster than allowed.', waitMs);
  }

  function takeRoom({ accountId }: DeviceIdentity, bytes: number): Reservation {
    const place = budget.enter(String(accountId), bytes);
    if (!place) throw comeLater('Too many requests are waiting already: try again later.');
    return place;
  }

  async function waitForRoom(place: Reservation): Promise<void> {
    await waitAtMost(place.entered, patienceMs);
    if (place.isIn) return;
    place.leave();
    throw comeLater('The service is overloaded: try again later.');
  }

  type Given = { name: string; body: Buffer; format: PayloadFormat; arrivedTs: WallMs };

  function handOn(exchange: Exchange, device: HttpDevice, given: Given): void {
    if (exchange.isOver) return;
    const { name, body, format, arrivedTs } = given;
    const { identity } = device;
    const mayTell = () => mayTellNow(identity.uuid);
    const topic = device.upPrefix + name;
    const { rejectionsPerMessage: max } = limits;
    const uplink = parseUplink(topic, device.upPrefix, body, arrivedTs, max, mayTell, format);
    const { content } = uplink;
    exchange.parsed(content);
    if (exchange.isOver) return;
    observe.message(content.kind);
    if (content.kind === 'time') {
      // Its answer says what time it is: nobody else is to be told.
      exchange.echo = content.request.echo;
      uplink.content = { kind: 'none' };
    }
    devices.take(device, uplink.items);
    exchange.sinceMs = now();
    underWay.add(exchange);
    ports.ingest(identity, uplink, exchange);
  }

  return {
    post,

    /** Gives up what is not stored in time. */
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
    bytes: () => budget.bytes + bodies.bytes(),
  };
}

type BodiesOptions = {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largePatienceMs'>;
  /** Those that are no larger than others may be. */
  bodies: BegunBodies;
};

/** What is read of one device. */
type BodyOf = { name: string; accountId: number };

/** Its room is reserved before it is read: it makes way for nobody. */
const reserved: BegunBodies = { begin: () => ({ add() {}, end() {} }), bytes: () => 0 };

/** Reads bodies: those of measurements may be larger, and each of these is charged to its account before it is read. */
function createBodies({ limits, tuning, bodies }: BodiesOptions) {
  const budget = createLargeMessageBudget(tuning.maxLargeBytes);
  const mostOf = (name: string) =>
    name === 'measurements' ? mostMeasurementBytes(limits) : limits.maxPacketBytes;

  async function enter(accountId: number, bytes: number): Promise<LargePlace> {
    const { promise: entered, resolve } = Promise.withResolvers<void>();
    const place = budget.enter(accountId, bytes, resolve);
    if (!place.isIn) await waitAtMost(entered, tuning.largePatienceMs);
    if (place.isIn) return place;
    place.leave();
    throw comeLater('Other large bodies of this account are still arriving: try again later.');
  }

  return {
    /** Throws 413 where the body is announced to be larger than it may be. */
    check: (request: IncomingMessage, name: string): void => checkLength(request, mostOf(name)),

    /** Rejects as `readBody`, and with 503 where a large one has no room in time. */
    async read(request: IncomingMessage, { name, accountId }: BodyOf): Promise<Buffer> {
      const most = mostOf(name);
      // Of one that comes in chunks nobody knows the length.
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

/** Throws 415 for what is neither; a board that names no type sends JSON. */
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

/** Throws 413 where the body is announced to have more than `most` bytes. */
function checkLength({ headers }: IncomingMessage, most: number): void {
  if (Number(headers['content-length'] ?? 0) > most) throw tooLarge(most);
}

const tooLarge = (most: number) =>
  new HttpProblem(413, 'payload-too-large', `The body must have at most ${most} bytes.`);

/**
 * The body where all that is announced has arrived, as it mostly has of a small one: nothing is to be waited
 * for then. Null where there may be more to come, or where it has more than `most` bytes.
 */
function takeArrivedBody(request: IncomingMessage, most: number): Buffer | null {
  const announced = Number(request.headers['content-length']);
  if (announced === 0 || announced > most || request.readableLength !== announced) return null;
  const body = request.read() as Buffer | null;
  // Node sees only then that the request has ended.
  request.resume();
  return body;
}

/**
 * Reads all of it. Rejects with 413 beyond `most` bytes, with 503 where its memory is needed for others, and
 * where the client goes away.
 */
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
      if (!joined.hasRoom(chunk)) return fail(tooLarge(most));
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
  /** `giveUp`: its memory is needed for others. */
  begin(giveUp: () => void): BegunBody;
  bytes(): number;
};

type BegunBody = {
  /** So many more bytes of it have come. */
  add(bytes: number): void;
  end(): void;
};

/**
 * Bodies that have begun and not ended may take so many bytes together; beyond, the one that began first is
 * given up. A body that comes at once is never that one, however many never end.
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
  /** Answers with a problem; the log has faults of our own. */
  refuse(exchange: Exchange, error: unknown): void;
  /** It was answered, or nobody waits for that any more and it need not be stored. */
  over(exchange: Exchange): void;
};

/** One message that came as a request, from its arrival to its answer, which follows the commit. */
class Exchange implements Delivery {
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
    this.refuse(comeLater('The service could not store this in time: send it again.'));
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
