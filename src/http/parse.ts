import { nextTurn } from '../lib/in-turns.ts';
import { z } from 'zod';
import { checkInParts, isLarge } from '../lib/check-parts.ts';
import { jsonPointer } from '../lib/json-pointer.ts';
import { DomainError, type Problem } from '../errors.ts';
import { describeAs } from './schema.ts';
import { describeIssue } from '../lib/issue-message.ts';

/** A path that names nothing possible names nothing: 404, the same as for what does not exist. */
export function parseParams(schema: z.ZodType | undefined, raw: unknown): unknown {
  if (!schema) return undefined;
  const result = schema.safeParse(raw);
  if (!result.success) throw new DomainError('not-found', 'There is no such resource.');
  return result.data;
}

const strict = z
  .enum(['true', 'false'], 'expected true or false')
  .optional()
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, {
        type: 'boolean',
        description: 'What would be warned of because it is not known is refused.',
      });
    },
  });

/** The query of a route that refuses, when it is asked to, what it otherwise warns of. */
export function strictly(query: z.ZodType | undefined): z.ZodType {
  return query instanceof z.ZodObject ? query.extend({ strict }) : z.object({ strict });
}

/**
 * Parses query and body and throws every problem of both at once; where the body is wrong, or with
 * `?strict=true`, the warnings are among them.
 */
export function parseInput(
  schemas: { query?: z.ZodType | undefined; body?: z.ZodType | undefined },
  raw: { query: unknown; body: unknown },
  warn: (body: unknown) => Problem[] = () => [],
): { query: unknown; body: unknown; warnings: Problem[] } {
  const query = schemas.query?.safeParse(raw.query);
  const body = schemas.body?.safeParse(raw.body);
  const warnings = warn(body?.data);
  // A name that nobody knows is mostly one that is missing, misspelt.
  const isTold = body?.success === false || isStrictQuery(query?.data);
  const problems = [
    ...problemsOf(query, (path) => String(path[0] ?? '')),
    ...problemsOf(body, jsonPointer),
    ...(isTold ? warnings.map(({ path, message }) => ({ path, message })) : []),
  ];
  if (problems.length > 0) throw invalid(problems);
  return { query: query?.data, body: body?.data, warnings };
}

export const isStrictQuery = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'strict' in query && query.strict === 'true';

// A large array of wrong elements must not be answered with a larger list of errors.
export const maxProblems = 100;
/** Members that are checked before others have their turn. */
const membersInTurn = 2_000;

/**
 * Looks through a large body piece by piece, and throws as soon as as many problems are found as an
 * answer lists. What is left to `parseInput` then has few, and takes a few milliseconds.
 */
export async function refuseLargeInvalid(
  schema: z.ZodType | undefined,
  body: unknown,
): Promise<void> {
  if (!schema || !isLarge(body)) return;
  const problems: Problem[] = [];
  let members = 0;
  for (const part of checkInParts(schema, body)) {
    for (const { path, message } of part.problems)
      problems.push({ path: jsonPointer(path), message });
    if (problems.length >= maxProblems) throw invalid(problems);
    members += part.size;
    if (members < membersInTurn) continue;
    members = 0;
    await nextTurn();
  }
  await nextTurn();
}

/** Of all problems the answer has the first hundred, and says so. */
export function invalid(problems: Problem[]): DomainError {
  const detail =
    problems.length < maxProblems
      ? 'The request is not valid.'
      : `The request is not valid. Its first ${maxProblems} problems are listed.`;
  return new DomainError('invalid-input', detail, { problems: problems.slice(0, maxProblems) });
}

export function problemsOf(
  result: z.ZodSafeParseResult<unknown> | undefined,
  write: (path: readonly PropertyKey[]) => string,
): Problem[] {
  const issues = result?.error?.issues ?? [];
  return issues
    .slice(0, maxProblems)
    .map((issue) => ({ path: write(issue.path), message: describeIssue(issue.message) }));
}
