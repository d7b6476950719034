import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { createDocument, type ZodOpenApiPathsObject } from 'zod-openapi';
import { capitalized } from '../lib/text.ts';
import { KeyHeader, TagHeader } from './answer.ts';
import { isAnonymous } from './body.ts';
import type { Route } from './route.ts';

type Document = ReturnType<typeof createDocument>;
type Operation = NonNullable<ZodOpenApiPathsObject[string]['get']>;
type Responses = NonNullable<Operation['responses']>;

/** The OpenAPI document of all routes that are not hidden, made from the schemas that validate them. */
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
      description:
        'Devices, purposes, events and measurements. Start with `POST /v2/accounts`: its ' +
        '`accountAuthToken` is the bearer token for everything that follows. Replace the ' +
        'identifiers in examples with your own. Times are milliseconds since the Unix epoch.',
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
          description:
            'accountAuthToken of /v2/accounts or /v2/accounts/login, or data.token of /v1/auth/login.',
        },
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A key of /v2/accounts/keys with the scope that the operation names.',
        },
        ticket: {
          type: 'apiKey',
          in: 'query',
          name: 'ticket',
          description: 'From an address created with POST /v2/streams.',
        },
      },
    },
  });
  return describeParameters(nameInnerSchemas(tidySchemaNames(sayMessages(document))));
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
      ...(route.takesKey ? { header: KeyHeader } : {}),
      ...(route.hasTag ? { header: TagHeader } : {}),
    },
    ...(route.body
      ? {
          requestBody: {
            required: !route.body.safeParse(undefined).success,
            content: {
              'application/json': {
                schema: route.body,
                ...(route.example === undefined ? {} : { example: route.example }),
              },
            },
          },
        }
      : {}),
    ...(route.takes ? { requestBody: streamedBody(route.takes) } : {}),
    responses: { '200': success(route), ...failures(route) },
  };
}

function streamedBody(takes: Record<string, string>): NonNullable<Operation['requestBody']> {
  const types = Object.entries(takes).map(
    ([type, example]) => [type, { schema: z.string(), example }] as const,
  );
  return { required: true, content: Object.fromEntries(types) };
}

/** OpenAPI 3.1, Security Requirement Object: for a scheme without scopes of its own, the list names roles. */
function securityOf({ auth, scope }: Route): Record<string, string[]>[] {
  if (auth === 'none') return [];
  if (auth === 'ticket') return [{ ticket: [] }];
  return scope === undefined ? [{ bearer: [] }] : [{ bearer: [] }, { apiKey: [scope] }];
}

function success(route: Route): Responses['200'] {
  const content: Record<string, { schema: z.ZodType }> = {};
  const { types = [], json: isJson = true, messages } = route.streams ?? {};
  if (isJson) content['application/json'] = { schema: route.response };
  const said = messages ?? (isJson ? undefined : route.response);
  for (const type of types) content[type] = said ? documentMessages(said) : { schema: z.string() };
  const headers = Object.entries(route.responseHeaders ?? {}).map(
    ([name, description]) => [name, z.string().optional().meta({ description })] as const,
  );
  return {
    description: 'Success.',
    content,
    ...(headers.length > 0 ? { headers: z.object(Object.fromEntries(headers)) } : {}),
  };
}

/** Names the input and output schemas for generated types. A schema with an `id` keeps that name. */
function nameSchemas(routes: Route[]): Record<string, z.ZodType> {
  const names = new Map<z.ZodType, string>();
  for (const { name, body, response, streams } of routes) {
    if (name === undefined) continue;
    if (body) addName(names, body, `${capitalized(name)}Request`);
    const answered = streams?.json === false ? 'Message' : 'Response';
    addName(names, response, capitalized(name) + answered);
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

type WebhookOperation = NonNullable<ZodOpenApiPathsObject[string]['post']>;

/** What this service posts to others, by name. `body` is the schema of what they receive. */
export type WebhookDocs = Record<
  string,
  { summary: string; description: string; body: z.ZodType; headers: Record<string, string> }
>;

/** A webhook as an operation of the reference. */
function describeWebhook({
  summary,
  description,
  body,
  headers,
}: WebhookDocs[string]): WebhookOperation {
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
      '2XX': { description: 'The receiver accepted the message.' },
      '4XX': {
        description: 'The message is sent again later, as it is after 5 s without an answer.',
      },
    },
  };
}

type Parameter = { description?: string; schema?: { description?: string } };
type WithPaths = { paths?: Record<string, object> };

/** Copies each schema's description to its parameter, because pages and generators read the parameter's own. */
function describeParameters<D extends WithPaths>(document: D): D {
  const paths = mapRecord(document.paths ?? {}, (path) =>
    mapRecord(path as Record<string, { parameters?: Parameter[] }>, ({ parameters, ...rest }) => ({
      ...rest,
      ...(parameters === undefined ? {} : { parameters: parameters.map(describeParameter) }),
    })),
  );
  return { ...document, paths };
}

function describeParameter({ description, schema, ...rest }: Parameter): Parameter {
  const said = description ?? schema?.description;
  return { ...rest, ...(said === undefined ? {} : { description: said }), schema };
}

function mapRecord<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

type Json = Record<string, unknown>;
type WithSchemas = { components?: { schemas?: Record<string, unknown> } };

/**
 * Names each unnamed object within a named schema after its place: `sessions` of `ListSessionsResponse` becomes
 * `ListSessionsResponseSessionsItem`. Otherwise generators would number them, in an order that changes. Follows no
 * reference, because a schema may refer to itself. Throws if two get the same name.
 */
function nameInnerSchemas<D extends WithSchemas>(document: D): D {
  const schemas = document.components?.schemas;
  if (!schemas) return document;
  const named: Record<string, unknown> = {};
  const add = (name: string, schema: unknown) => {
    if (name in named) throw new Error(`Two schemas of the reference are named ${name}.`);
    named[name] = schema;
  };
  const nameWithin = (schema: Json, owner: string): Json => {
    const inner = (part: unknown, name: string): unknown => {
      if (Array.isArray(part)) return part.map((one, index) => inner(one, `${name}${index + 1}`));
      if (!isJson(part)) return part;
      const within = nameWithin(part, name);
      if (!isObject(part)) return within;
      add(name, within);
      return { $ref: `#/components/schemas/${name}` };
    };
    const entries = Object.entries(schema).map(([keyword, part]): [string, unknown] => {
      if (keyword === 'properties') return [keyword, mapValues(part as Json, owner, inner)];
      if (keyword === 'items') return [keyword, inner(part, `${owner}Item`)];
      if (keyword === 'anyOf' || keyword === 'oneOf') return [keyword, inner(part, `${owner}Form`)];
      if (keyword === 'additionalProperties') return [keyword, inner(part, `${owner}Value`)];
      return [keyword, part];
    });
    return Object.fromEntries(entries);
  };
  for (const [name, schema] of Object.entries(schemas))
    add(name, isJson(schema) ? nameWithin(schema, name) : schema);
  return { ...document, components: { ...document.components, schemas: named } };
}

function mapValues(members: Json, owner: string, change: (part: unknown, name: string) => unknown) {
  const entries = Object.entries(members).map(([key, part]) => {
    const words = key.split(/\W+/).filter((word) => word !== '');
    return [key, change(part, owner + words.map(capitalized).join(''))];
  });
  return Object.fromEntries(entries) as Json;
}

const isJson = (part: unknown): part is Json =>
  typeof part === 'object' && part !== null && !Array.isArray(part);

/** An object with members. A map or an arbitrary object needs no name. */
const isObject = ({ type, properties }: Json) =>
  type === 'object' && Object.keys((properties as Json | undefined) ?? {}).length > 0;

type Schemas = Record<string, unknown>;
type Referring = { components?: { schemas?: Schemas } };

const refPattern = /"#\/components\/schemas\/([^"]+)"/g;
/** The library's suffix for the output form of a schema, where it may differ from the input form. */
const suffix = 'Output';

/**
 * Removes schemas that nothing refers to. Gives the plain name to a schema that is only output, or whose output form
 * equals its input form: the library creates both forms of each named schema.
 */
function tidySchemaNames<D extends Referring>(document: D): D {
  const { schemas = {} } = document.components ?? {};
  const used = findUsed(document, schemas);
  const alike = findAlike(schemas);
  const plainNameOf = (name: string) => {
    const plain = plainOf(name);
    return alike.has(name) || !used.has(plain) ? plain : name;
  };
  const withPlainNames = <T>(part: T): T => {
    const text = JSON.stringify(part).replaceAll(
      refPattern,
      (_, name: string) => `"#/components/schemas/${plainNameOf(name)}"`,
    );
    return JSON.parse(text) as T;
  };
  // Of two equal forms, the input form comes first and is kept.
  const named = new Map<string, unknown>();
  for (const [name, schema] of Object.entries(schemas)) {
    const plain = plainNameOf(name);
    if (used.has(name) && !(named.has(plain) && plain !== name)) named.set(plain, schema);
  }
  return withPlainNames({
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(named) },
  });
}

/** Schemas that something other than a schema refers to, and those that these refer to. */
function findUsed(document: Referring, schemas: Schemas): ReadonlySet<string> {
  const used = new Set<string>();
  const waiting = [...namesIn({ ...document, components: {} })];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    waiting.push(...namesIn(schemas[name]));
  }
  return used;
}

/**
 * Output forms that equal their input forms, apart from forbidding further members. Starts with all of them, and
 * removes those that differ and those that refer to one that differs.
 */
function findAlike(schemas: Schemas): ReadonlySet<string> {
  const alike = new Set(Object.keys(schemas).filter((name) => plainOf(name) in schemas));
  for (const name of alike) if (plainOf(name) === name) alike.delete(name);
  const textOf = (name: string) =>
    JSON.stringify(schemas[name])
      .replaceAll(/,?"additionalProperties":false/g, '')
      .replaceAll(refPattern, (all, ref: string) => (alike.has(ref) ? `"${plainOf(ref)}"` : all))
      .replaceAll('#/components/schemas/', '');
  for (let before = -1; before !== alike.size;) {
    before = alike.size;
    for (const name of alike) if (textOf(name) !== textOf(plainOf(name))) alike.delete(name);
  }
  return alike;
}

function namesIn(part: unknown): string[] {
  const text = JSON.stringify(part) ?? '';
  return [...text.matchAll(refPattern)].map(([, name = '']) => name);
}

const plainOf = (name: string) => (name.endsWith(suffix) ? name.slice(0, -suffix.length) : name);

const marker = 'x-data';

/** Documents the data of a stream's messages; `sayMessages` corrects it afterwards. */
const documentMessages = (schema: z.ZodType) => ({ schema, [marker]: {} });

/**
 * OpenAPI 3.1 describes a stream as text, and cannot say what its messages are. `x-data` refers to the schema of their
 * data, so that generated code has a type for it.
 */
function sayMessages<D extends object>(document: D): D {
  const text = JSON.stringify(document, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || !(marker in value)) return value;
    const { schema } = value as { schema?: unknown };
    return { schema: { type: 'string' }, [marker]: schema };
  });
  return JSON.parse(text) as D;
}

type FailureResponses = NonNullable<NonNullable<ZodOpenApiPathsObject[string]['get']>['responses']>;

const ProblemResponse = z
  .object({
    type: z.string().meta({
      description:
        'Stable, for programs: urn:sensorium:error: followed by invalid-input, ' +
        'unauthenticated, forbidden, account-disabled, quota-exceeded, not-found, device-gone, ' +
        'conflict, condition-holds, precondition-failed, too-many-requests, unavailable, internal-error, or the HTTP reason phrase ' +
        'of the status.',
      example: 'urn:sensorium:error:not-found',
    }),
    title: z.string(),
    status: z.int(),
    detail: z.string().meta({ description: 'For people.' }),
    timestamp: z.int(),
    requestId: z.string().meta({ description: "Identifies the request in the service's log." }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }).meta({ id: 'InvalidMember' }))
      .optional()
      .meta({
        description:
          'The problems, at most a hundred; `path` is a JSON Pointer or a query parameter.',
      }),
    quota: z
      .string()
      .optional()
      .meta({ description: 'The name of the quota that this request would exceed.' }),
    limit: z.int().optional().meta({ description: "The account's limit." }),
    used: z.int().optional().meta({ description: 'What the account uses.' }),
    values: z
      .array(z.object({ sId: z.string(), val: z.number(), ts: z.int() }).meta({ id: 'SaidValue' }))
      .optional()
      .meta({ description: 'For condition-holds: the newest values, for which the alarm lasts.' }),
  })
  .meta({ id: 'Problem', description: 'The members of RFC 9457, and `timestamp`.' });

const saidOf: Record<number, string> = {
  400: 'Something in the request is wrong: `errors` says where and what was expected.',
  401: 'The token is missing, or it is not or no longer valid.',
  403: 'Not allowed: `detail` says why. The API key lacks the scope, or API keys cannot open this route.',
  404: 'The resource does not exist, or it belongs to somebody else.',
  408: 'No part of the body arrived for too long.',
  409: 'The request conflicts with something: `detail` says with what.',
  412: '`If-Match` names another version than the one that is there: read it again.',
  413: 'The body is too large.',
  415: 'The body has an unsupported media type.',
  422: 'The `Idempotency-Key` was already used for a different request.',
  429: 'Too many requests: try again after `Retry-After`.',
  500: "An internal error; the service's log has it under the `requestId`.",
  503: 'Something is temporarily unavailable or full: try again after `Retry-After`.',
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

/** What a route answers besides 200. It adds what every route can answer, so authors do not repeat that. */
function failures(route: Route): FailureResponses {
  const statuses = new Set([...route.errors, 500, 503]);
  if (route.body ?? route.query) statuses.add(400);
  if (route.body) statuses.add(413).add(415);
  if (route.takes) statuses.add(400).add(408).add(415);
  if (route.takesKey) statuses.add(400).add(409).add(422);
  if (route.hasTag) statuses.add(412);
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
  return Object.fromEntries(entries) as FailureResponses;
}
