import { z } from 'zod';
import { createDocument, type ZodOpenApiPathsObject } from 'zod-openapi';
import { capitalized } from '../lib/capitalized.ts';
import { failures } from './openapi-failures.ts';
import { nameInnerSchemas } from './openapi-inner.ts';
import { describeParameters } from './openapi-parameters.ts';
import { tidySchemaNames } from './openapi-names.ts';
import { KeyHeader } from './once.ts';
import { documentMessages, sayMessages } from './openapi-streams.ts';
import { describeWebhook, type WebhookDocs } from './openapi-webhooks.ts';
import type { Route } from './route.ts';

type Document = ReturnType<typeof createDocument>;
type Operation = NonNullable<ZodOpenApiPathsObject[string]['get']>;
type Responses = NonNullable<Operation['responses']>;

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
      description:
        'Devices, purposes, events and measurements. Begin with `POST /v2/accounts`: its `accountAuthToken` is ' +
        'the bearer token of all that follows. Identifiers in examples are to be replaced by your own. Times ' +
        'are milliseconds since the Unix epoch.',
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

/** OpenAPI 3.1, Security Requirement Object: of a scheme without scopes of its own the list names roles. */
function securityOf({ auth, scope }: Route): Record<string, string[]>[] {
  if (auth === 'none') return [];
  if (auth === 'ticket') return [{ ticket: [] }];
  return scope === undefined ? [{ bearer: [] }] : [{ bearer: [] }, { apiKey: [scope] }];
}

function success(route: Route): Responses['200'] {
  const content: Record<string, { schema: z.ZodType }> = {};
  const isJson = route.streams?.json !== false;
  if (isJson) content['application/json'] = { schema: route.response };
  for (const type of route.streams?.types ?? [])
    content[type] = isJson ? { schema: z.string() } : documentMessages(route.response);
  const headers = Object.entries(route.responseHeaders ?? {}).map(
    ([name, description]) => [name, z.string().optional().meta({ description })] as const,
  );
  return {
    description: 'Success.',
    content,
    ...(headers.length > 0 ? { headers: z.object(Object.fromEntries(headers)) } : {}),
  };
}

/** What routes take and give, by names for generated types; a schema of several routes has one of its own. */
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
