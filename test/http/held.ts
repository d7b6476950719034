import { z } from 'zod';
import { defineRoute, type Route } from '../../src/http/route.ts';

/** A route that answers on demand, and the requests of it that are under way. */
export function held(answerBytes: number) {
  const underWay: (() => void)[] = [];
  const route: Route = defineRoute({
    method: 'post',
    path: '/held',
    summary: 'Held',
    tag: 'Test',
    auth: 'account',
    body: z.unknown(),
    response: z.object({}),
    errors: [],
    answerBytes,
    handler: async () => {
      await new Promise<void>((resolve) => underWay.push(resolve));
      return {};
    },
  });
  return { route, underWay };
}

/** A route that answers at once. */
export const quick = defineRoute({
  method: 'get',
  path: '/quick',
  summary: 'Quick',
  tag: 'Test',
  auth: 'none',
  response: z.object({}),
  errors: [],
  handler: async () => ({}),
});
