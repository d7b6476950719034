import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectionPlaces } from '../../src/lib/connection-places.ts';
import { UnreadBodies } from '../../src/lib/request-body.ts';
import { waitUntil } from '../../src/lib/wait.ts';
import { DeviceLimits, type SharedLimits } from '../device/limits.ts';
import { createRefusals, createRefusedLoginLog } from '../device/refused-logins.ts';
import {
  type ConnectorOptions,
  type ConnectorPorts,
  defaultTuning,
  type Observer,
} from '../ports.ts';
import {
  comeLater,
  createHttpDevices,
  createLogin,
  HttpProblem,
  notFound,
  createSendProblem,
  toProblem,
} from './devices.ts';
import { createHttpDown } from './long-poll.ts';
import { createHttpUplink } from './uplink.ts';

type HttpConnectorOptions = Pick<ConnectorOptions, 'limits' | 'log' | 'now' | 'tuning'> & {
  observe?: Partial<Pick<Observer, 'messages' | 'acknowledged' | 'refused'>>;
  /** The client's address, whatever proxies are in between. */
  findAddress: (request: IncomingMessage) => string;
  /** The process's; its own if absent. */
  unreadBodies?: UnreadBodies;
  /** Learns which connections have logged in. */
  places?: Pick<ConnectionPlaces, 'know'>;
  /** Whether the process is about to stop. Each answer then ends its connection. */
  isLeaving: () => boolean;
} & SharedLimits;

export type HttpSnapshot = {
  /** Messages that are being stored. */
  underWay: number;
  /** Messages that wait because of the rates of their devices. */
  waiting: number;
  /** Devices' requests that wait for messages. */
  polls: number;
  /** Polls beyond a rate that are about to be refused. */
  refusals: number;
  /** About how much memory requests take. */
  bytes: number;
};

/** Takes requests below `/devices/` from any HTTP server. */
export type HttpConnector = {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Answers 503 while paused. */
  pause(isPaused: boolean): void;
  snapshot(): HttpSnapshot;
  /** Accepts nothing new. Messages under way are stored and answered within `drainMs`, or not acknowledged. */
  close(options: { drainMs: number }): Promise<void>;
};

const idleEveryMs = 10_000;
const silent = { acknowledged() {}, refused() {} };

/** Starts the device contract over HTTP: one message a request. */
export function startHttpConnector(
  options: HttpConnectorOptions,
  ports: ConnectorPorts,
): HttpConnector {
  const { limits, log, now, findAddress, places, isLeaving } = options;
  const tuning = { ...defaultTuning, ...options.tuning };
  const observe = { ...silent, messages: new Map(), ...options.observe };
  const refusals = createRefusals(limits.refusedLoginsPerSecond, now);
  const logRefused = createRefusedLoginLog(log, now, 'http');
  const login = createLogin({ ports, refusals, logRefused, observe, places, findAddress });
  const deviceLimits = options.deviceLimits ?? new DeviceLimits({ ports, limits, now });
  const devices = createHttpDevices({ ports, deviceLimits, now });
  const { unreadBodies = new UnreadBodies() } = options;
  const sendProblem = createSendProblem({ unreadBodies, findAddress, clock: ports.clock });
  const uplink = createHttpUplink({
    ports,
    devices,
    deviceLimits,
    limits,
    tuning,
    observe,
    log,
    now,
    sendProblem,
  });
  const down = createHttpDown({ ports, devices, tuning, log, now });
  let isPaused = false;
  let isStopping = false;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = readPath(request.url ?? '');
    if (!path) throw notFound('There is no such resource.');
    if (isPaused) throw comeLater('The service is low on memory: try again later.');
    if (isStopping) throw comeLater('The service is stopping: try again.', 1);
    const device = await login(request, path.uuid);
    if (path.direction === 'up') return uplink.post(request, response, device, path.topic);
    await down.get(request, response, { device, search: path.query });
  }

  function answerError(response: ServerResponse, error: unknown): void {
    const known = toProblem(error);
    if (!known)
      log.error(
        { event: 'device-request.failed', err: error },
        "A device's request could not be answered.",
      );
    const problem =
      known ?? new HttpProblem(500, 'internal-error', 'The service could not answer this request.');
    sendProblem(response, problem);
  }

  function forgetIdle(): void {
    devices.forgetIdle();
    down.forgetIdle();
  }

  const sweeping = setInterval(() => uplink.giveUpLate(), tuning.sweepIntervalMs);
  const forgetting = setInterval(forgetIdle, idleEveryMs);
  for (const timer of [sweeping, forgetting]) timer.unref();

  return {
    handle(request, response) {
      if (isStopping || isLeaving()) response.setHeader('Connection', 'close');
      serve(request, response).catch((error: unknown) => answerError(response, error));
    },
    pause: (isToPause) => void (isPaused = isToPause),
    snapshot: () => ({
      underWay: uplink.countUnderWay(),
      waiting: devices.countWaiting(),
      polls: down.countWaiting(),
      refusals: down.countRefusals(),
      bytes: uplink.bytes(),
    }),
    async close({ drainMs }) {
      isStopping = true;
      devices.stop();
      await down.stop();
      await waitUntil(() => uplink.countUnderWay() === 0, drainMs);
      uplink.giveUpAll();
      clearInterval(sweeping);
      clearInterval(forgetting);
    },
  };
}

/** Everything below this path is for devices. */
export const devicesPrefix = '/devices/';

const up = '/up/';
const down = '/down';

/** What a request's target names. `topic` is what follows `up/`. */
type DevicePath =
  | { direction: 'up'; uuid: string; topic: string }
  | { direction: 'down'; uuid: string; query: string };

/** Null if there is no such path. The uuid is in lower case, as RFC 9562 section 4 recommends. */
function readPath(target: string): DevicePath | null {
  if (!target.startsWith(devicesPrefix)) return null;
  const asked = target.indexOf('?');
  const path = asked < 0 ? target : target.slice(0, asked);
  const nameEnd = path.indexOf('/', devicesPrefix.length);
  if (nameEnd <= devicesPrefix.length) return null;
  const uuid = path.slice(devicesPrefix.length, nameEnd).toLowerCase();
  if (path.startsWith(up, nameEnd)) {
    const topic = path.slice(nameEnd + up.length);
    return topic === '' || topic.includes('/') ? null : { direction: 'up', uuid, topic };
  }
  if (path.length !== nameEnd + down.length || !path.endsWith(down)) return null;
  return { direction: 'down', uuid, query: asked < 0 ? '' : target.slice(asked + 1) };
}
