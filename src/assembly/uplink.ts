import type { IncomingMessage } from 'node:http';
import { devicesPrefix } from '../../connector/http/path.ts';
import { startHttpConnector, type HttpConnector } from '../../connector/http/server.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { DomainError } from '../errors.ts';
import { trustProxies } from '../http/address.ts';
import { probeRoutes } from '../http/probes.ts';
import { startHttp, type HttpOptions, type HttpServer } from '../http/server.ts';
import { observeHttpTurns } from '../metrics/observe-http-turns.ts';
import { observeHttpUplink } from '../metrics/observe-http-uplink.ts';
import {
  connectorLimits,
  connectorPorts,
  type ConnectorSide,
  type DeviceLogins,
} from './device-ports.ts';
import type { Shared } from './shared.ts';

/** Takes what devices send over HTTP; the API listens for it, or `startUplinkHttp`. */
export function startUplink(
  side: ConnectorSide,
  connectorId: number,
  logins: DeviceLogins,
): HttpConnector {
  const { shared } = side;
  const { config, log, metrics, readiness } = shared;
  const uplink: HttpConnector = startHttpConnector(
    {
      limits: connectorLimits(config),
      log: log.child({ component: 'http-uplink', connectorId }),
      observe: observeHttpUplink(metrics.registry, () => uplink.snapshot()),
      now: shared.monotonicClock,
      rateStore: side.rateStore,
      findAddress: addressOf(config.http.trustedProxies),
      onLogin: ({ socket }) => shared.places.know(socket),
      isLeaving: readiness.isStopping,
    },
    connectorPorts(side, connectorId, logins),
  );
  shared.memory.addIntake(uplink.pause);
  shared.edges.add('HTTP uplink', (drainMs) => uplink.close({ drainMs }));
  return uplink;
}

function addressOf(trustedProxies: string[]): (request: IncomingMessage) => string {
  const findAddress = trustProxies(trustedProxies);
  return ({ socket, headers }) =>
    findAddress(socket.remoteAddress ?? '', String(headers['x-forwarded-for'] ?? ''));
}

/**
 * The HTTP of a connector process: what its devices send over HTTP, or MQTT over a WebSocket, and probes. It has
 * nothing of the API.
 */
export async function startConnectorHttp(
  shared: Shared,
  listen: { host: string; port: number },
  takes: Pick<HttpOptions, 'inFront' | 'upgrades'>,
): Promise<HttpServer> {
  const { config, log, metrics, clock, readiness } = shared;
  const http = await startHttp({
    ...listen,
    ...config.http,
    places: shared.places,
    routes: probeRoutes(readiness),
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'There is nothing to log in to.');
    },
    ...takes,
    log: log.child({ component: 'http' }),
    clock,
    observe: metrics.observeHttp,
    roomBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    isLeaving: readiness.isStopping,
  });
  observeHttpTurns(metrics.registry, http.countWaiting);
  shared.edges.add('HTTP', (withinMs) => http.close(withinMs));
  return http;
}

/** Requests of devices are none of Koa's. */
export function inFrontOf({ handle }: HttpConnector): Pick<HttpOptions, 'inFront'> {
  return { inFront: { prefix: devicesPrefix, handle } };
}

/** MQTT over a WebSocket. Behind a trusted proxy its address is the one that the proxy names. */
export function upgradesOf(
  connector: Connector,
  trustedProxies: string[],
): Pick<HttpOptions, 'upgrades'> {
  const findAddress = addressOf(trustedProxies);
  return {
    upgrades: {
      '/mqtt': (request, socket, head) =>
        connector.acceptWebSocket(request, socket, head, findAddress(request)),
    },
  };
}
