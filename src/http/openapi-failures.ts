import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { isAnonymous } from './body.ts';
import type { Route } from './route.ts';

type Responses = NonNullable<NonNullable<ZodOpenApiPathsObject[string]['get']>['responses']>;

const ProblemResponse = z
  .object({
    type: z.string().meta({
      description:
        'Stable, for programs: urn:sensorium:error: and invalid-input, unauthenticated, forbidden, ' +
        'account-disabled, quota-exceeded, not-found, device-gone, conflict, too-many-requests, unavailable, ' +
        'internal-error, or the words of the status.',
      example: 'urn:sensorium:error:not-found',
    }),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'For people.' }),
    timestamp: z.int(),
    requestId: z.string().meta({ description: 'Names the request in the log of the service.' }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }).meta({ id: 'InvalidMember' }))
      .optional()
      .meta({
        description:
          'The problems, a hundred at most; `path` is a JSON Pointer or a query parameter.',
      }),
    quota: z
      .string()
      .optional()
      .meta({ description: 'The name of the quota that this would go beyond.' }),
    limit: z.int().optional().meta({ description: 'What the account may have of it.' }),
    used: z.int().optional().meta({ description: 'What it has.' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 members, and `timestamp`.' });

const saidOf: Record<number, string> = {
  400: 'Something in the request is wrong: `errors` says where, and what was expected.',
  401: 'There is no token, or it opens nothing (any more).',
  403: 'Not allowed: `detail` says why. An API key lacks the scope, or no key opens this.',
  404: "There is no such thing, or it is somebody else's.",
  408: 'Nothing of the body came for too long.',
  409: 'It is in the way of something else: `detail` says of what.',
  413: 'The body is too large.',
  415: 'The body is of another media type.',
  422: 'The `Idempotency-Key` came with another request before.',
  429: 'Too many requests: again after `Retry-After`.',
  500: 'A fault of the service, which its log has by the `requestId`.',
  503: 'Something is away or full for the moment: again after `Retry-After`.',
};

const seconds = z.string().optional().meta({ description: 'Seconds.' });
const challenge = z.string().optional().meta({ description: 'Bearer.' });
const headersOf: Record<number, z.ZodObject> = {
  401: z.object({ 'WWW-Authenticate': challenge }),
  429: z.object({ 'Retry-After': seconds }),
  503: z.object({ 'Retry-After': seconds }),
};

function describeStatus(status: number, route: Route): string {
  if (status === 413 && isAnonymous(route)) return 'The body has more than 64 KiB.';
  return saidOf[status] ?? `${STATUS_CODES[status] ?? 'Error'}.`;
}

/** What a route answers beside 200. What every route can answer is not repeated by its author. */
export function failures(route: Route): Responses {
  const statuses = new Set([...route.errors, 500, 503]);
  if (route.body ?? route.query) statuses.add(400);
  if (route.body) statuses.add(413).add(415);
  if (route.takes) statuses.add(400).add(408).add(415);
  if (route.takesKey) statuses.add(400).add(409).add(422);
  if (route.auth !== 'none') statuses.add(401);
  if (route.auth === 'account' || route.auth === 'ticket') statuses.add(403).add(429);
  if (route.params) statuses.add(404);
  const entries = [...statuses]
    .toSorted((a, b) => a - b)
    .map((status) => [
      String(status),
      {
        description: describeStatus(status, route),
        ...(headersOf[status] ? { headers: headersOf[status] } : {}),
        content: { 'application/json': { schema: ProblemResponse } },
      },
    ]);
  return Object.fromEntries(entries) as Responses;
}
