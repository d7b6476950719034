import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from './route.ts';
import { timestamp } from './schema.ts';

const StatusResponse = z.object({
  status: z.enum(['online', 'degraded']),
  timestamp,
  /** What is not well, by name; empty when online. */
  degraded: z.array(z.string()),
});

export type StatusDeps = {
  clock: () => number;
  /** Names of what is not well (`database`, `sessions`, …); empty when all is. Never waits long. */
  findTroubles: () => Promise<string[]>;
  /** Whether requests and devices can be served: MQTT and HTTP listen and the database answers. */
  isReady: () => Promise<boolean>;
};

/** Specification 4.6, and what orchestrators ask. */
export function statusRoutes({ clock, findTroubles, isReady }: StatusDeps): Route[] {
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
        const degraded = await findTroubles();
        const status = degraded.length === 0 ? ('online' as const) : ('degraded' as const);
        return { status, timestamp: clock(), degraded };
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
