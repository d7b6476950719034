import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { LogRefusedLogin } from '../device/refused-logins.ts';
import type { Refusals } from '../device/refusals.ts';
import type { Observer } from '../options.ts';
import type { ConnectorPorts, DeviceLogin } from '../ports.ts';
import { notFound, tooMany, unauthenticated } from './problem.ts';

export type LoginDeps = {
  ports: Pick<ConnectorPorts, 'authenticateDevice'>;
  refusals: Refusals;
  logRefused: LogRefusedLogin;
  observe: Pick<Observer, 'refused'>;
  /** Told of each request that was let in. */
  onLogin?: ((request: IncomingMessage) => void) | undefined;
  /** The client's address: looked for where it matters only. */
  findAddress: (request: IncomingMessage) => string;
};

/** Logins of an address that has shown too many wrong ones wait for so long at most. */
const longestWaitMs = 10_000;
/** Requests that wait for that, of all addresses. */
const maxWaiting = 1_000;

/** Lets a request in: gives the device that it speaks for, or throws what it is answered with. */
export type Login = (request: IncomingMessage, uuid: string) => Promise<DeviceIdentity>;

export function createLogin(deps: LoginDeps): Login {
  const { ports, refusals, logRefused, observe, onLogin, findAddress } = deps;
  /** Connections whose last request was let in: they do not wait for what others of their address tried. */
  const letIn = new WeakSet<Socket>();
  let waiting = 0;

  async function waitForTurn(address: string): Promise<void> {
    for (let waitMs = refusals.waitMs(address); waitMs > 0; waitMs = refusals.waitMs(address)) {
      if (waitMs > longestWaitMs || waiting >= maxWaiting)
        throw tooMany('Too many wrong logins came from this address.', waitMs);
      waiting += 1;
      await sleep(waitMs);
      waiting -= 1;
    }
  }

  return async (request, uuid) => {
    const { socket } = request;
    if (!refusals.isEmpty() && !letIn.has(socket)) await waitForTurn(findAddress(request));
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
    onLogin?.(request);
    if (device.uuid !== uuid)
      throw notFound('This is not the path of the device that is logged in.');
    return device;
  };
}

/** Its address is looked for only by who keeps a refused login. */
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

/** RFC 7617 section 2 and RFC 6750 section 2.1. Null where there is none that can be read. */
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
