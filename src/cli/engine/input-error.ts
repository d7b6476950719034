import { warnOfUnknown } from '../../contract/unknown-members.ts';
import { findJsonError } from '../../lib/json.ts';
import { jsonPointer } from '../../lib/json-pointer.ts';
import type { z } from 'zod';
import { describeIssue } from '../../lib/issue-message.ts';

/** Something in a file or a stream that cannot be used; the message says where. */
export class InputError extends Error {}

/** Reads JSON; `where` names the file, and `fromLine` the line of it at which the text begins. Throws `InputError`. */
export function readJson(text: string, where: string, fromLine = 1): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const error = findJsonError(text);
    if (!error) throw new InputError(`${where}:${fromLine}: this is no JSON.`);
    const { line, column, found, expected } = error;
    const at = `${where}:${line + fromLine - 1}:${column}`;
    throw new InputError(`${at}: expected ${expected}, found ${found}.`);
  }
}

const mostProblems = 20;

/** The value as the schema reads it. Throws `InputError` with every problem and its JSON Pointer, a line each. */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where: string,
  path = '',
): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => ({
    message: describeIssue(issue.message),
    path: jsonPointer(issue.path),
  }));
  // A name that nobody knows is mostly one that is missing, misspelt.
  const lines = [...problems, ...warnOfUnknown(schema, value)];
  refuse(lines.map((one) => `${where} ${path}${one.path}: ${one.message}`));
}

/** Throws `InputError` that has the first of these lines. */
export function refuse(lines: readonly string[]): never {
  const more = lines.length - mostProblems;
  const told = lines.slice(0, mostProblems).map(oneSpace);
  throw new InputError([...told, ...(more > 0 ? [`And ${more} more.`] : [])].join('\n'));
}

/** The place of a whole file has no pointer. */
export const oneSpace = (line: string) => line.replace(' : ', ': ');
