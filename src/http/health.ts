import { DomainError } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import { probeRoutes, type ProbeDeps } from './probes.ts';
import { startHttp, type HttpServer } from './server.ts';

export type HealthOptions = ProbeDeps & { host: string; port: number; log: Logger };

/** Serves `/livez` and `/readyz` on an address of their own. Rejects when it cannot be had. */
export function startHealth({ listUnready, ...options }: HealthOptions): Promise<HttpServer> {
  return startHttp({
    ...options,
    routes: probeRoutes({ listUnready }),
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'Nothing here asks for a token.');
    },
  });
}
