import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from './route.ts';

export type ProbeDeps = {
  /** Names of what keeps work away (`starting`, `database`, …); empty when ready. Never waits long. */
  listUnready: () => Promise<string[]>;
};

/** What orchestrators and load balancers ask: whether to restart, and whether to send work. */
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
