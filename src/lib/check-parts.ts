import type { z } from 'zod';
import { describeIssue } from './issue-message.ts';
import { partsOf } from './schema-parts.ts';

/** A part of a value that was checked: about how large it is, and what is wrong in it. */
export type CheckedPart = { size: number; problems: PartProblem[] };

export type PartProblem = { path: PropertyKey[]; message: string };

/** What is checked in one go: up to so many members, those of members included. */
const maxPartSize = 500;

/** Whether a value is so large that one go of a schema over it, with all its faults, takes long. */
export function isLarge(value: unknown): boolean {
  return sizeOf(value) > maxPartSize;
}

/**
 * Checks the members of a large value one by one, so that whoever calls may stop at enough faults (a
 * schema lists them all, and a fault costs more than what is sound) or do something else in between.
 * What it finds wrong is wrong; what the schema has to say on a large value as a whole is left out.
 */
export function* checkInParts(
  schema: z.core.$ZodType,
  value: unknown,
  path: PropertyKey[] = [],
): Generator<CheckedPart> {
  const size = sizeOf(value);
  if (size > maxPartSize) {
    const parts = partsOf(schema);
    if (parts.kind === 'wrapped' && wrappers.has(parts.by))
      return yield* checkInParts(parts.inner, value, path);
    if (parts.kind === 'array' && Array.isArray(value)) {
      for (const [index, item] of value.entries())
        yield* checkInParts(parts.element, item, [...path, index]);
      return;
    }
    if (parts.kind === 'object' && isRecord(value)) {
      for (const [key, member] of Object.entries(parts.members))
        if (value[key] !== undefined) yield* checkInParts(member, value[key], [...path, key]);
      return;
    }
  }
  const result = (schema as z.ZodType).safeParse(value);
  const issues = result.error?.issues ?? [];
  const problems = issues.map((issue) => ({
    path: [...path, ...issue.path],
    message: describeIssue(issue.message),
  }));
  yield { size, problems };
}

/** Kinds of schemas that say of a value that is there what the schema within says. */
const wrappers = new Set(['optional', 'nullable', 'default', 'prefault']);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Members, those of members included; counts no further than it takes to call it large. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  let size = 1;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && size <= maxPartSize; at += 1) size += sizeOf(value[at]);
    return size;
  }
  for (const key in value) {
    size += sizeOf((value as Record<string, unknown>)[key]);
    if (size > maxPartSize) break;
  }
  return size;
}
