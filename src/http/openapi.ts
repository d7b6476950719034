import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { createDocument, type ZodOpenApiPathsObject } from 'zod-openapi';
import { tidySchemaNames } from './openapi-names.ts';
import type { Route } from './route.ts';

type Document = ReturnType<typeof createDocument>;
type Operation = NonNullable<ZodOpenApiPathsObject[string]['get']>;
type Responses = NonNullable<Operation['responses']>;

const ProblemResponse = z
  .object({
    type: z.string().meta({ description: 'Stable; for programs.' }),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'For people.' }),
    timestamp: z.int(),
    requestId: z.string().meta({ description: 'Names the request in the log of the service.' }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
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

/** What this service posts to others, by name: `body` is what they get. */
export type WebhookDocs = Record<
  string,
  { summary: string; description: string; body: z.ZodType; headers: Record<string, string> }
>;

/** The reference of all routes that are not hidden, from the very schemas that validate them. */
export function createOpenApi(
  routes: Route[],
  version: string,
  webhooks: WebhookDocs = {},
): Document {
  const paths: ZodOpenApiPathsObject = {};
  const shown = routes.filter((route) => !route.hidden);
  for (const route of shown) {
    paths[route.path] = { ...paths[route.path], [route.method]: describe(route) };
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Sensorium',
      version,
      description: 'Devices, purposes, events and measurements.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This service' }],
    tags: [...new Set(shown.map((route) => route.tag))].map((name) => ({ name })),
    security: [],
    paths,
    webhooks: Object.fromEntries(
      Object.entries(webhooks).map(([name, webhook]) => [
        name,
        { post: { operationId: `webhook-${name}`, ...describeWebhook(webhook) } },
      ]),
    ),
    components: {
      schemas: nameSchemas(shown),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'accountAuthToken of /v2/accounts/login, or data.token of /v1/auth/login.',
        },
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A key of /v2/accounts/keys, with the scope that the operation names.',
        },
        ticket: {
          type: 'apiKey',
          in: 'query',
          name: 'ticket',
          description: 'Of an address that POST /v2/streams made.',
        },
      },
    },
  });
  return tidySchemaNames(document);
}

function describe(route: Route): Operation {
  return {
    operationId: route.name ?? pathAsName(route),
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    security: securityOf(route),
    requestParams: {
      ...(route.params instanceof z.ZodObject ? { path: route.params } : {}),
      ...(route.query instanceof z.ZodObject ? { query: route.query } : {}),
    },
    ...(route.body
      ? {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: { 'application/json': { schema: route.body } },
          },
        }
      : {}),
    responses: { '200': success(route), ...failures(route) },
  };
}

/** OpenAPI 3.1, Security Requirement Object: of a scheme without scopes of its own the list names roles. */
function securityOf({ auth, scope }: Route): Record<string, string[]>[] {
  if (auth === 'none') return [];
  if (auth === 'ticket') return [{ ticket: [] }];
  return scope === undefined ? [{ bearer: [] }] : [{ bearer: [] }, { apiKey: [scope] }];
}

function describeWebhook({ summary, description, body, headers }: WebhookDocs[string]): Operation {
  const described = Object.entries(headers).map(
    ([name, text]) => [name, z.string().meta({ description: text })] as const,
  );
  return {
    summary,
    description,
    tags: ['Accounts'],
    security: [],
    requestParams: { header: z.object(Object.fromEntries(described)) },
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      '2XX': { description: 'It is taken.' },
      '4XX': { description: 'It is sent again later, as with no answer within 5 s.' },
    },
  };
}

function success(route: Route): Responses['200'] {
  const content: Record<string, { schema: z.ZodType }> = {};
  if (route.streams?.json !== false) content['application/json'] = { schema: route.response };
  for (const type of route.streams?.types ?? []) content[type] = { schema: z.string() };
  const headers = Object.entries(route.responseHeaders ?? {}).map(
    ([name, description]) => [name, z.string().optional().meta({ description })] as const,
  );
  return {
    description: 'Success.',
    content,
    ...(headers.length > 0 ? { headers: z.object(Object.fromEntries(headers)) } : {}),
  };
}

/** What every route can answer is not repeated by its author. */
function failures(route: Route): Responses {
  const statuses = new Set([...route.errors, 500, 503]);
  if (route.body ?? route.query) statuses.add(400);
  if (route.body) statuses.add(413).add(415);
  if (route.auth !== 'none') statuses.add(401);
  if (route.auth === 'account' || route.auth === 'ticket') statuses.add(429);
  if (route.params) statuses.add(404);
  const entries = [...statuses]
    .toSorted((a, b) => a - b)
    .map((status) => [
      String(status),
      {
        description: `${STATUS_CODES[status] ?? 'Error'}.`,
        content: { 'application/json': { schema: ProblemResponse } },
      },
    ]);
  return Object.fromEntries(entries) as Responses;
}

/** What routes take and give, by names for generated types; a schema of several routes has one of its own. */
function nameSchemas(routes: Route[]): Record<string, z.ZodType> {
  const names = new Map<z.ZodType, string>();
  for (const { name, body, response, streams } of routes) {
    if (name === undefined) continue;
    if (body) addName(names, body, `${capitalized(name)}Request`);
    if (streams?.json !== false) addName(names, response, `${capitalized(name)}Response`);
  }
  return Object.fromEntries([...names].map(([schema, name]) => [name, schema]));
}

function addName(names: Map<z.ZodType, string>, schema: z.ZodType, name: string): void {
  if (!names.has(schema) && schema.meta()?.id === undefined) names.set(schema, name);
}

/** `get /v2/devices/{deviceAuthUuid}` → `getV2DevicesDeviceAuthUuid`. */
function pathAsName({ method, path }: Route): string {
  const words = path.split(/[/{}.-]+/).filter((word) => word !== '');
  return method + words.map(capitalized).join('');
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
