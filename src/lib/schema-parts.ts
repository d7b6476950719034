import type { z } from 'zod';

type Schema = z.core.$ZodType;

/** The parts of a schema. `wrapped`: `by` is the kind of the outer schema (optional, default, …). */
type SchemaParts =
  | { kind: 'object'; members: Readonly<Record<string, Schema>>; isOpen: boolean }
  | { kind: 'array'; element: Schema }
  | { kind: 'union'; options: readonly Schema[] }
  | { kind: 'wrapped'; by: string; inner: Schema }
  | { kind: 'pipe'; from: Schema }
  | { kind: 'other' };

/** The only function that looks inside a zod schema. `isOpen`: it accepts members of other names too. */
export function partsOf(schema: Schema): SchemaParts {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ('innerType' in def) return { kind: 'wrapped', by: def.type, inner: def.innerType };
  switch (def.type) {
    case 'pipe':
      return { kind: 'pipe', from: def.in };
    case 'array':
      return { kind: 'array', element: def.element };
    case 'union':
      return { kind: 'union', options: def.options };
    case 'object': {
      const isOpen = def.catchall !== undefined && def.catchall._zod.def.type !== 'never';
      return { kind: 'object', members: def.shape, isOpen };
    }
    default:
      return { kind: 'other' };
  }
}
