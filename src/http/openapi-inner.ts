import { capitalized } from '../lib/capitalized.ts';

type Json = Record<string, unknown>;
type WithSchemas = { components?: { schemas?: Record<string, unknown> } };

/**
 * Names each object within a named schema that has no name of its own, after where it is: `sessions` of
 * `ListSessionsResponse` holds `ListSessionsResponseSessionsItem`. Generators would number them otherwise, in an
 * order that changes. Follows no reference: a schema may refer to itself. Throws where two have one name.
 */
export function nameInnerSchemas<D extends WithSchemas>(document: D): D {
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

/** An object with members: a map or any object needs no name. */
const isObject = ({ type, properties }: Json) =>
  type === 'object' && Object.keys((properties as Json | undefined) ?? {}).length > 0;
