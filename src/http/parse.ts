import type { z } from 'zod';
import { DomainError, type Problem } from '../errors.ts';

/** RFC 6901: how a place in a document is written. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** A path that names nothing possible names nothing: 404, the same as for what does not exist. */
export function parseParams(schema: z.ZodType | undefined, raw: unknown): unknown {
  if (!schema) return undefined;
  const result = schema.safeParse(raw);
  if (!result.success) throw new DomainError('not-found', 'There is no such resource.');
  return result.data;
}

/** Parses query and body and throws every problem of both at once. */
export function parseInput(
  schemas: { query?: z.ZodType; body?: z.ZodType },
  raw: { query: unknown; body: unknown },
): { query: unknown; body: unknown } {
  const query = schemas.query?.safeParse(raw.query);
  const body = schemas.body?.safeParse(raw.body);
  const problems = [
    ...problemsOf(query, (path) => String(path[0] ?? '')),
    ...problemsOf(body, jsonPointer),
  ];
  if (problems.length > 0) {
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  return { query: query?.data, body: body?.data };
}

// A large array of rubbish must not be answered with a larger one.
const maxProblems = 100;

function problemsOf(
  result: z.ZodSafeParseResult<unknown> | undefined,
  write: (path: readonly PropertyKey[]) => string,
): Problem[] {
  const issues = result?.error?.issues ?? [];
  return issues
    .slice(0, maxProblems)
    .map((issue) => ({ path: write(issue.path), message: issue.message }));
}
