import type { z } from 'zod';
import type { Problem } from '../errors.ts';
import { nextTurn } from '../lib/in-turns.ts';
import { jsonPointer } from '../lib/json-pointer.ts';
import { partsOf } from '../lib/schema-parts.ts';
import type { ListBody } from './list-body.ts';
import { invalid, isStrictQuery, maxProblems, problemsOf } from './parse.ts';

type ListSchemas = {
  query?: z.ZodType | undefined;
  body?: z.ZodType | undefined;
  listBody: ListBody;
};

type WarnOf = ((schema: z.ZodType, sent: unknown, read?: never) => Problem[]) | undefined;

/** Elements that are parsed before others have their turn. */
const elementsInTurn = 20;

/**
 * Parses a query and a body that is a list, element by element. Throws every problem, a hundred at most, with
 * the element's place in its path; warnings are of the elements, with such paths too.
 */
export async function parseListInput(
  { query, body, listBody: { member } }: ListSchemas,
  raw: { query: unknown; body: unknown },
  warnOf: WarnOf,
): Promise<{ query: unknown; body: unknown; warnings: Problem[] }> {
  const parsedQuery = query?.safeParse(raw.query);
  const problems = problemsOf(parsedQuery, (path) => String(path[0] ?? ''));
  const element = elementOf(body, member);
  const sent = listOf(raw.body, member);
  if (sent.length === 0) problems.push({ path: `/${member}`, message: 'expected at least one' });
  const list: unknown[] = [];
  const warnings: Problem[] = [];
  for (const [index, one] of sent.entries()) {
    if (problems.length >= maxProblems) break;
    if (index > 0 && index % elementsInTurn === 0) await nextTurn();
    const at = `/${member}/${index}`;
    const read = element.safeParse(one);
    problems.push(...problemsOf(read, (path) => at + jsonPointer(path)));
    list.push(read.data);
    if (warnings.length >= maxProblems) continue;
    for (const said of warnOf?.(element, one, read.data as never) ?? [])
      warnings.push({ ...said, path: at + said.path });
  }
  if (isStrictQuery(parsedQuery?.data))
    problems.push(...warnings.map(({ path, message }) => ({ path, message })));
  if (problems.length > 0) throw invalid(problems);
  return {
    query: parsedQuery?.data,
    body: { [member]: list },
    warnings: warnings.slice(0, maxProblems),
  };
}

function elementOf(body: z.ZodType | undefined, member: string): z.ZodType {
  const whole = body && partsOf(body);
  const list = whole?.kind === 'object' ? whole.members[member] : undefined;
  const parts = list && partsOf(list);
  if (parts?.kind !== 'array') throw new Error(`The schema of the body has no list ${member}.`);
  return parts.element as z.ZodType;
}

function listOf(body: unknown, member: string): unknown[] {
  const list = (body as Record<string, unknown> | undefined)?.[member];
  return Array.isArray(list) ? list : [];
}
