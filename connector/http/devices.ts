import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeviceIdentity, upPrefix } from '../../src/contract/uplink.ts';
import type { ConnectionPlaces } from '../../src/lib/connection-places.ts';
import type { UnreadBodies } from '../../src/lib/request-body.ts';
import { type DeviceLimits, type DeviceRates, lookMs } from '../device/limits.ts';
import type { LogRefusedLogin, Refusals } from '../device/refused-logins.ts';
import {
  type ConnectorPorts,
  type DeviceLogin,
  isGone,
  isUnavailableError,
  type Observer,
} from '../ports.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

/** A message that waits because of the rates of its device or account. */
type InLine = {
  sinceMs: number;
  /** Called when the message may go on. */
  go(): void;
  /** Called when the message has waited too long and would wait about `waitMs` more; 0: the service is stopping. */
  giveUp(waitMs: number): void;
};

/** What is kept of a device between its requests, until its rates have recovered. */
export type HttpDevice = {
  identity: DeviceIdentity;
  rates: DeviceRates;
  upPrefix: string;
  /** Messages in order of arrival, over all its connections. */
  line: InLine[];
  timer: NodeJS.Timeout | null;
  /** When `presence` was last told that the device sent something. */
  seenReportedMs: number;
};

/** The longest that an answer is delayed. A device that would have to wait longer is told so instead. */
export const longestDelayMs = 10_000;
const seenEveryMs = 1_000;

export type HttpDevices = ReturnType<typeof createHttpDevices>;

/** Devices that send over HTTP. They have the same rates as over MQTT, and each one's messages keep their order. */
export function createHttpDevices({
  ports,
  deviceLimits,
  now,
}: {
  ports: Pick<ConnectorPorts, 'presence'>;
  deviceLimits: DeviceLimits;
  now: MonotonicClock;
}) {
  const devices = new Map<number, HttpDevice>();

  function deviceOf(identity: DeviceIdentity): HttpDevice {
    const known = devices.get(identity.deviceId);
    if (known) return known;
    const device: HttpDevice = {
      identity,
      rates: deviceLimits.enter(identity),
      upPrefix: upPrefix(identity.uuid),
      line: [],
      timer: null,
      seenReportedMs: -Infinity,
    };
    devices.set(identity.deviceId, device);
    return device;
  }

  /** Notes that something of the device was read. */
  function tellSeen(device: HttpDevice): void {
    const monotonicMs = now();
    if (monotonicMs - device.seenReportedMs < seenEveryMs) return;
    device.seenReportedMs = monotonicMs;
    ports.presence(device.identity, 'seen');
  }

  function look(device: HttpDevice): void {
    device.timer = null;
    const { line } = device;
    const lateMs = now() - longestDelayMs;
    let wait = 0;
    while (line.length > 0) {
      const [first] = line as [InLine];
      wait = deviceLimits.waitMs(device.rates);
      const isLate = first.sinceMs <= lateMs;
      if (wait > 0 && !isLate) break;
      line.shift();
      if (wait > 0) first.giveUp(wait);
      else first.go();
    }
    if (line.length > 0) device.timer = setTimeout(() => look(device), Math.min(wait, lookMs));
  }

  return {
    of: deviceOf,

    /** How long a message that arrives now would wait, ms. */
    waitMs: (device: HttpDevice): number =>
      deviceLimits.waitMs(device.rates) +
      (device.line.length * 1_000) / deviceLimits.messageRate.perSecond,

    /** Runs `one.go` in the device's order, as soon as its rates allow. */
    enter(device: HttpDevice, one: InLine): void {
      const wait = device.line.length === 0 ? deviceLimits.waitMs(device.rates) : 0;
      if (device.line.length === 0 && wait === 0) return one.go();
      deviceLimits.countWait();
      device.line.push(one);
      device.timer ??= setTimeout(() => look(device), Math.min(wait, lookMs));
    },

    tellSeen,

    /** Charges a poll. If the device polls too often, returns after how many ms it may poll again; 0: it may now. */
    takePoll(device: HttpDevice): number {
      const waitMs = deviceLimits.othersWaitMs(device.rates);
      if (waitMs > 0) return waitMs;
      deviceLimits.charge(device.rates, { others: 1 }, now());
      tellSeen(device);
      return 0;
    },

    /** Forgets devices that could send at full rate again. */
    forgetIdle(): void {
      for (const [id, { line, rates }] of devices) {
        if (line.length > 0 || !deviceLimits.isFull(rates)) continue;
        devices.delete(id);
        deviceLimits.leave(rates);
      }
    },

    countWaiting(): number {
      let count = 0;
      for (const { line } of devices.values()) count += line.length;
      return count;
    },

    /** Gives up all messages that wait. */
    stop(): void {
      for (const device of devices.values()) {
        if (device.timer) clearTimeout(device.timer);
        device.timer = null;
        for (const one of device.line.splice(0)) one.giveUp(0);
      }
    },
  };
}

type LoginDeps = {
  ports: Pick<ConnectorPorts, 'authenticateDevice'>;
  refusals: Refusals;
  logRefused: LogRefusedLogin;
  observe: Pick<Observer, 'refused'>;
  /** Learns which connections have logged in. */
  places: Pick<ConnectionPlaces, 'know'> | undefined;
  /** Finds the client's address. Called only where it matters. */
  findAddress: (request: IncomingMessage) => string;
};

/** The longest that a login waits because of failed logins from its address. */
const longestWaitMs = 10_000;
/** How many requests may wait for this, over all addresses. */
const maxWaiting = 1_000;

/** Logs a request in. Returns the device that it speaks for, or throws the problem to answer with. */
type Login = (request: IncomingMessage, uuid: string) => Promise<DeviceIdentity>;

export function createLogin(deps: LoginDeps): Login {
  const { ports, refusals, logRefused, observe, places, findAddress } = deps;
  /** Connections whose last request was logged in. They do not wait because of failed logins from their address. */
  const letIn = new WeakSet<Socket>();
  let waiting = 0;

  async function waitForPlace(address: string): Promise<void> {
    for (let waitMs = refusals.waitMs(address); waitMs > 0; waitMs = refusals.waitMs(address)) {
      if (waitMs > longestWaitMs || waiting >= maxWaiting)
        throw tooMany('Too many failed logins from this address.', waitMs);
      waiting += 1;
      await sleep(waitMs);
      waiting -= 1;
    }
  }

  return async (request, uuid) => {
    const { socket } = request;
    if (!refusals.isEmpty() && !letIn.has(socket)) await waitForPlace(findAddress(request));
    const given = readCredentials(request.headers.authorization, uuid);
    const credentials = given && new RequestLogin(given, request, findAddress);
    const device = credentials && (await ports.authenticateDevice(credentials));
    if (!device) {
      const address = findAddress(request);
      letIn.delete(socket);
      refusals.refused(address);
      logRefused(address, credentials?.username);
      observe.refused('not-authorized');
      throw unauthenticated();
    }
    letIn.add(socket);
    places?.know(socket);
    if (device.uuid !== uuid)
      throw notFound('This path belongs to a different device than the one logged in.');
    return device;
  };
}

/** Finds the address only when a refused login has to be recorded. */
class RequestLogin implements DeviceLogin {
  readonly username: string;
  readonly password: string;
  readonly #request: IncomingMessage;
  readonly #findAddress: LoginDeps['findAddress'];

  constructor(
    { username, password }: DeviceLogin,
    request: IncomingMessage,
    findAddress: LoginDeps['findAddress'],
  ) {
    this.username = username;
    this.password = password;
    this.#request = request;
    this.#findAddress = findAddress;
  }

  get address(): string {
    return this.#findAddress(this.#request);
  }
}

/** RFC 7617 section 2 and RFC 6750 section 2.1. Null if there are no readable credentials. */
export function readCredentials(header: string | undefined, uuid: string): DeviceLogin | null {
  if (header === undefined) return null;
  const space = header.indexOf(' ');
  const scheme = header.slice(0, space).toLowerCase();
  const value = header.slice(space + 1).trim();
  if (value === '') return null;
  if (scheme === 'bearer') return { username: uuid, password: value };
  if (scheme !== 'basic') return null;
  const text = Buffer.from(value, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 0) return null;
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Why a device's request is not answered with 200, as in RFC 9457. `code` is for programs. */
export class HttpProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Record<string, string>;
  readonly errors: { path: string; message: string }[] | undefined;

  constructor(
    status: number,
    code: string,
    detail: string,
    options: {
      retryAfterSeconds?: number;
      headers?: Record<string, string>;
      errors?: { path: string; message: string }[];
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    const { retryAfterSeconds, headers = {}, errors } = options;
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.headers =
      retryAfterSeconds === undefined
        ? headers
        : { ...headers, 'Retry-After': String(Math.max(1, Math.ceil(retryAfterSeconds))) };
  }
}

const laterSeconds = 5;

/** Nothing was stored; a repetition may be. RFC 9110 section 15.6.4. */
export function comeLater(detail: string, retryAfterSeconds = laterSeconds): HttpProblem {
  return new HttpProblem(503, 'unavailable', detail, { retryAfterSeconds });
}

/** RFC 6585 section 4. */
export function tooMany(detail: string, waitMs: number): HttpProblem {
  const retryAfterSeconds = waitMs / 1_000;
  return new HttpProblem(429, 'too-many-requests', detail, { retryAfterSeconds });
}

export function notFound(detail: string): HttpProblem {
  return new HttpProblem(404, 'not-found', detail);
}

/** RFC 9110 section 11.6.1: either of the two schemes works. */
export function unauthenticated(): HttpProblem {
  return new HttpProblem(
    401,
    'unauthenticated',
    'Expected Basic (device uuid and token) or Bearer (token) credentials for this device.',
    { headers: { 'WWW-Authenticate': 'Basic realm="device", Bearer realm="device"' } },
  );
}

/** The problem to answer an error with; null if the fault is ours. */
export function toProblem(error: unknown): HttpProblem | null {
  if (error instanceof HttpProblem) return error;
  if (isGone(error)) return unauthenticated();
  if (isUnavailableError(error))
    return comeLater('The service could not store this: send it again.');
  return null;
}

type SendProblemDeps = {
  unreadBodies: UnreadBodies;
  /** The client's address, whatever proxies are in between. */
  findAddress: (request: IncomingMessage) => string;
  clock: () => number;
};

/** Answers a response's request with the problem. */
export type SendProblem = (response: ServerResponse, problem: HttpProblem) => void;

export function createSendProblem(deps: SendProblemDeps): SendProblem {
  return (response, problem) => void sendProblem(deps, response, problem);
}

/** Closes the connection if part of the body is unread: it is not the next request. */
async function sendProblem(
  { unreadBodies, findAddress, clock }: SendProblemDeps,
  response: ServerResponse,
  { status, code, message, headers, errors }: HttpProblem,
): Promise<void> {
  const request = response.req;
  const timestamp = clock();
  const isUnread = !request.complete;
  // Closing with unread bytes would reset the connection and lose the answer: RFC 9112 section 9.6.
  if (isUnread) await unreadBodies.drop(request, findAddress(request));
  if (response.headersSent || response.destroyed) return;
  const title = STATUS_CODES[status] ?? 'Error';
  const type = `urn:sensorium:error:${code}`;
  const body = JSON.stringify({ type, title, status, detail: message, timestamp, errors });
  response.writeHead(status, {
    'Content-Type': 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...headers,
    ...(isUnread ? { Connection: 'close' } : {}),
  });
  response.end(body);
}
