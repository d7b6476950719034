import { z } from 'zod';

/** A JSON Schema of the document, with its references resolved. */
export type Schema = Record<string, unknown>;

type Parameter = {
  name: string;
  in: 'path' | 'query';
  required?: boolean;
  example?: unknown;
  schema: Schema;
};
type Content = Record<string, { schema: Schema; example?: unknown }>;

/** An operation of the OpenAPI document that the service serves. */
export type Operation = {
  /** `get /v2/devices`: method and path as documented. */
  name: string;
  method: string;
  path: string;
  secured: boolean;
  pathParameters: Parameter[];
  queryParameters: Parameter[];
  /** For a body in JSON. */
  body: Schema | null;
  /** If there are several, the first. */
  bodyType: string | null;
  /** The body that the reference shows. */
  example: unknown;
  responses: Record<string, { content?: Content }>;
};

type Document = {
  paths: Record<string, Record<string, Record<string, unknown>>>;
};

/** By the text of their document: most services of a process serve the same one. */
const read = new Map<string, Operation[]>();

/** All operations of a running service, from the document that it serves. */
export async function fetchOperations(url: string): Promise<Operation[]> {
  const text = await (await fetch(`${url}/v2/openapi.json`)).text();
  const operations = read.get(text) ?? readOperations(JSON.parse(text) as Schema);
  read.set(text, operations);
  return operations;
}

function readOperations(raw: Schema): Operation[] {
  const { paths } = resolveReferences(raw, raw) as Document;
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      const parameters = (operation['parameters'] ?? []) as Parameter[];
      const requestBody = operation['requestBody'] as { content: Content } | undefined;
      const content = requestBody?.content ?? {};
      const [bodyType = null] = Object.keys(content);
      return {
        name: `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        secured: (operation['security'] as unknown[]).length > 0,
        pathParameters: parameters.filter((parameter) => parameter.in === 'path'),
        queryParameters: parameters.filter((parameter) => parameter.in === 'query'),
        body: content['application/json']?.schema ?? null,
        bodyType,
        example: bodyType === null ? undefined : content[bodyType]?.example,
        responses: operation['responses'] as Operation['responses'],
      };
    }),
  );
}

function resolveReferences(value: unknown, document: Schema): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveReferences(item, document));
  if (typeof value !== 'object' || value === null) return value;
  if ('$ref' in value && typeof value.$ref === 'string') {
    let target: unknown = document;
    for (const key of value.$ref.split('/').slice(1)) target = (target as Schema)[key];
    return resolveReferences(target, document);
  }
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    resolveReferences(item, document),
  ]);
  return Object.fromEntries(entries);
}

const compiled = new Map<Schema, z.ZodType>();

/** The deviations of an answer from the document; empty if there are none. */
export function findDeviations(
  operation: Operation,
  { status, contentType, text }: { status: number; contentType: string; text: string },
): string[] {
  const response = operation.responses[String(status)];
  if (!response) return [`${operation.name} does not document ${status}: ${text}`];
  const type = contentType.split(';', 1)[0] ?? '';
  const schema = response.content?.[type]?.schema;
  if (!schema) return [`${operation.name} does not document ${type} for ${status}`];
  if (type !== 'application/json') return [];
  const validator = compiled.get(schema) ?? z.fromJSONSchema(schema);
  compiled.set(schema, validator);
  const result = validator.safeParse(JSON.parse(text));
  return (result.error?.issues ?? []).map(
    ({ path, message }) =>
      `${operation.name} ${status} at /${path.join('/')}: ${message} in ${text}`,
  );
}
