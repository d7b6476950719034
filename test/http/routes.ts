import { z } from 'zod';
import { DomainError } from '../../src/errors.ts';
import { defineRoute } from '../../src/http/route.ts';
import { limitQuery, timestampQuery, uuidParam } from '../../src/http/schema.ts';

const shared = { summary: 'A route', tag: 'Test', errors: [], response: z.unknown() } as const;

const echo = async ({ body }: { body: { text: string } }) => ({ length: body.text.length });

/** Routes that show what the application does for every route. */
export const routes = [
  defineRoute({
    ...shared,
    method: 'post',
    path: '/enter',
    auth: 'none',
    body: z.object({ text: z.string() }),
    handler: echo,
  }),
  defineRoute({
    ...shared,
    method: 'post',
    path: '/renew',
    auth: 'token',
    body: z.object({ text: z.string() }),
    handler: echo,
  }),
  defineRoute({
    ...shared,
    method: 'post',
    path: '/hook',
    auth: 'none',
    admit: async (request) => {
      if (request.header('x-secret') === 'right') return;
      throw new DomainError('unauthenticated', 'The secret is needed.');
    },
    body: z.object({ text: z.string() }),
    handler: echo,
  }),
  defineRoute({
    ...shared,
    method: 'post',
    path: '/things/{id}',
    auth: 'account',
    params: z.object({ id: uuidParam }),
    query: z.object({ limit: limitQuery(10), start: timestampQuery.optional() }),
    body: z.object({ name: z.string(), tags: z.array(z.object({ 'a/b~c': z.int() })).default([]) }),
    handler: async ({ params, query, body, account }) => ({ params, query, body, account }),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/fail',
    auth: 'none',
    handler: () => Promise.reject(new Error('select secret from vault')),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/wait',
    auth: 'none',
    handler: () =>
      Promise.reject(new DomainError('unavailable', 'Away.', { retryAfterSeconds: 2.2 })),
  }),
  defineRoute({
    ...shared,
    method: 'get',
    path: '/address',
    auth: 'none',
    handler: async ({ request }) => ({ address: request.address }),
  }),
];
