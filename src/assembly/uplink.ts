import type { IncomingMessage } from 'node:http';
import { devicesPrefix } from '../../connector/http/path.ts';
import { startHttpConnector, type HttpConnector } from '../../connector/http/server.ts';
import { DomainError } from '../errors.ts';
import { trustProxies } from '../http/address.ts';
import { probeRoutes } from '../http/probes.ts';
import { startHttp, type HttpServer } from '../http/server.ts';
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

/** The HTTP of a connector process: for devices, and for who asks whether it is ready. */
export async function startUplinkHttp(shared: Shared, uplink: HttpConnector): Promise<HttpServer> {
  const { config, log, metrics, clock, readiness } = shared;
  const http = await startHttp({
    ...config.httpListen,
    ...config.http,
    places: shared.places,
    routes: probeRoutes(readiness),
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'There is nothing to log in to.');
    },
    inFront: { prefix: devicesPrefix, handle: uplink.handle },
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
