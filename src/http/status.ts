import { z } from 'zod';
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
};

/** Specification 4.6. */
export function statusRoutes({ clock, findTroubles }: StatusDeps): Route[] {
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
  ];
}
