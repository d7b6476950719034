import type { z } from 'zod';

const marker = 'x-data';

/** How the data of each message of a stream is documented: to be put right by `sayMessages`. */
export const documentMessages = (schema: z.ZodType) => ({ schema, [marker]: {} });

/**
 * A stream is text for OpenAPI 3.1, which cannot say what its messages are. `x-data` refers to the schema of their
 * data, so that generated code has a type for it.
 */
export function sayMessages<D extends object>(document: D): D {
  const text = JSON.stringify(document, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || !(marker in value)) return value;
    const { schema } = value as { schema?: unknown };
    return { schema: { type: 'string' }, [marker]: schema };
  });
  return JSON.parse(text) as D;
}
