import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from './route.ts';
import { timestamp } from './schema.ts';

const BridgeStatus = z.object({
  connectorName: z.string(),
  /** `absent`: no process runs it. */
  state: z.enum(['connected', 'disconnected', 'absent']),
  /** Since when; null where no process runs it. */
  sinceTs: timestamp.nullable(),
  /** Where one process at a time is connected: whether one holds the lease; null elsewhere. */
  lease: z.enum(['held', 'free']).nullable(),
});

const StatusResponse = z.object({
  status: z.enum(['online', 'degraded']),
  timestamp,
  degraded: z
    .array(z.string())
    .describe('What is not well: database, sessions, bridge:<connectorName>; empty when online.'),
  bridges: z
    .array(BridgeStatus)
    .optional()
    .describe('Bridges to external brokers, whichever process runs them; absent without any.'),
});

export type StatusDeps = {
  clock: () => number;
  /** Names of what is not well (`database`, `sessions`, …); empty when all is. Never waits long. */
  findTroubles: () => Promise<string[]>;
  /**
   * All bridges of the configuration; empty where they cannot be looked up. Strangers read it: names
   * and states, but no reason, address or count.
   */
  listBridges?: () => Promise<z.infer<typeof BridgeStatus>[]>;
  /** Whether requests and devices can be served: MQTT and HTTP listen and the database answers. */
  isReady: () => Promise<boolean>;
};

/** Specification 4.6, and what orchestrators ask. */
export function statusRoutes(deps: StatusDeps): Route[] {
  const { clock, findTroubles, listBridges = async () => [], isReady } = deps;
  return [
    defineRoute({
      method: 'get',
      path: '/v2/status',
      summary: 'Status',
      tag: 'Status',
      auth: 'none',
      errors: [],
      response: StatusResponse,
      handler: async () => {
        const [troubles, bridges] = await Promise.all([findTroubles(), listBridges()]);
        const lost = bridges.filter(({ state }) => state !== 'connected');
        const degraded = [
          ...troubles,
          ...lost.map(({ connectorName }) => `bridge:${connectorName}`),
        ];
        const status = degraded.length === 0 ? ('online' as const) : ('degraded' as const);
        const seen = bridges.length === 0 ? {} : { bridges };
        return { status, timestamp: clock(), degraded, ...seen };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/livez',
      summary: 'Whether the process answers',
      tag: 'Status',
      auth: 'none',
      errors: [],
      response: z.object({ live: z.literal(true) }),
      handler: async () => ({ live: true as const }),
    }),
    defineRoute({
      method: 'get',
      path: '/readyz',
      summary: 'Whether requests and devices can be served',
      tag: 'Status',
      auth: 'none',
      errors: [503],
      response: z.object({ ready: z.literal(true) }),
      handler: async () => {
        if (!(await isReady())) throw new DomainError('unavailable', 'Not ready.');
        return { ready: true as const };
      },
    }),
  ];
}
