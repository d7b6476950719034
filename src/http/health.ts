import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { version } from '../version.ts';
import { defineRoute, type Route } from './route.ts';
import { timestamp } from './schema.ts';
import { type HttpOptions, type HttpServer, startHttp } from './server.ts';

/** Serves `/livez` and `/readyz` on a separate port. Rejects if it cannot listen there. */
export function startHealth({
  listUnready,
  ...options
}: ProbeDeps & Pick<HttpOptions, 'host' | 'port' | 'log' | 'clock'>): Promise<HttpServer> {
  return startHttp({
    ...options,
    routes: probeRoutes({ listUnready }),
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'No token is required here.');
    },
  });
}

type ProbeDeps = {
  /** Names what makes the service unready (`starting`, `database`, …); empty when ready. Never waits long. */
  listUnready: () => Promise<string[]>;
};

/** For orchestrators and load balancers: whether to restart the process, and whether to send it work. */
export function probeRoutes({ listUnready }: ProbeDeps): Route[] {
  return [
    defineRoute({
      name: 'getLiveness',
      method: 'get',
      path: '/livez',
      summary: 'Whether the process answers',
      tag: 'Status',
      auth: 'none',
      errors: [],
      isVital: true,
      response: z.object({ live: z.literal(true) }),
      handler: async () => ({ live: true as const }),
    }),
    defineRoute({
      name: 'getReadiness',
      method: 'get',
      path: '/readyz',
      summary: 'Whether requests and devices can be served',
      tag: 'Status',
      auth: 'none',
      errors: [503],
      quiet: true,
      isVital: true,
      response: z.object({ ready: z.literal(true) }),
      handler: async () => {
        const unready = await listUnready();
        if (unready.length > 0)
          throw new DomainError('unavailable', `Not ready: ${unready.join(', ')}.`);
        return { ready: true as const };
      },
    }),
  ];
}

const BridgeStatus = z
  .object({
    connectorName: z.string(),
    /** `absent`: no process runs the bridge. */
    state: z.enum(['connected', 'disconnected', 'absent']),
    /** Since when; null if no process runs the bridge. */
    sinceTs: timestamp.nullable(),
    reason: z
      .string()
      .nullable()
      .describe('Why it is not connected, as a code from docs/brokers.md.'),
    /** Whether a process holds the lease, for a bridge that one process at a time connects; null for others. */
    lease: z.enum(['held', 'free']).nullable(),
    holder: z.string().nullable().describe('The process that holds the lease: machine and number.'),
    lastInTs: timestamp.nullable(),
    lastOutTs: timestamp.nullable(),
    refused: z.int().describe('Messages not accepted since the processes that run it started.'),
  })
  .meta({ id: 'BridgeStatus' });

const StatusResponse = z.object({
  status: z.enum(['online', 'degraded']),
  timestamp,
  version: z
    .string()
    .meta({ description: 'The version of the program that answers.', example: '0.4.0' }),
  degraded: z
    .array(z.string())
    .describe(
      'What is not working: database, database-writes, sessions, clock (in doubt: nothing is ' +
        'deleted by it), bridge:<connectorName>; empty when online.',
    ),
  reasons: z
    .array(
      z.object({
        name: z.string().describe('Which part of `degraded` it concerns.'),
        reason: z.string().describe('A code from docs/operations.md.'),
        sinceTs: timestamp,
      }),
    )
    .optional()
    .describe('The reason, if it is known; otherwise absent.'),
  bridges: z
    .array(BridgeStatus)
    .optional()
    .describe(
      'Bridges to external brokers, whichever process runs them; absent if there are none.',
    ),
});

type StatusDeps = {
  /** Names of the parts that fail (`database`, `sessions`, …); empty when all work. Never waits long. */
  findFailures: () => Promise<string[]>;
  /** Known reasons for failures. Their names are in `degraded` too. They reveal nothing about any account. */
  listReasons?: () => { name: string; reason: string; sinceTs: number }[];
  /**
   * All configured bridges; empty if they cannot be looked up. Anybody can read them, so they name no broker's address
   * and no device.
   */
  listBridges?: () => Promise<z.infer<typeof BridgeStatus>[]>;
};

/** Specification section 4.6. */
export function statusRoutes(deps: StatusDeps): Route[] {
  const { findFailures, listReasons = () => [], listBridges = async () => [] } = deps;
  return [
    defineRoute({
      name: 'getStatus',
      method: 'get',
      path: '/v2/status',
      summary: 'Status',
      tag: 'Status',
      auth: 'none',
      errors: [],
      isVital: true,
      response: StatusResponse,
      handler: async ({ request }) => {
        const [failures, bridges] = await Promise.all([findFailures(), listBridges()]);
        const lost = bridges.filter(({ state }) => state !== 'connected');
        const reasons = listReasons();
        const degraded = [
          ...new Set([...failures, ...reasons.map(({ name }) => name)]),
          ...lost.map(({ connectorName }) => `bridge:${connectorName}`),
        ];
        const status = degraded.length === 0 ? ('online' as const) : ('degraded' as const);
        const seen = bridges.length === 0 ? {} : { bridges };
        const why = reasons.length === 0 ? {} : { reasons };
        return { status, timestamp: request.now(), version, degraded, ...why, ...seen };
      },
    }),
  ];
}
