import type { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import { countedOnly, type Rejection } from '../../src/contract/rejection.ts';
import { EventReport, maxItems, type Item } from '../../src/contract/uplink.ts';
import { checkInParts, isLarge, type PartProblem } from '../../src/lib/check-parts.ts';
import { describeIssue } from '../../src/lib/issue-message.ts';
import { jsonPointer } from '../../src/lib/json-pointer.ts';
import { emptyLine, tooManyItems } from './read-payload.ts';

/** What may have thousands of members. */
const nested = new Set<z.ZodType>([EventReport, Configuration]);

/** One item, or an array of them: those that are right. The first `maxRejections` others are rejected one by one. */
export function parseItems<T>(
  schema: z.ZodType<T>,
  sent: unknown,
  rejections: Rejection[],
  maxRejections: number,
): Item<T>[] {
  if (!Array.isArray(sent)) {
    const value = parseOne(schema, sent, '', rejections);
    return value === undefined ? [] : [{ index: null, value }];
  }
  if (sent.length > maxItems) {
    tooManyItems(sent.length, rejections);
    return [];
  }
  const items: Item<T>[] = [];
  let more = 0;
  for (let index = 0; index < sent.length; index++) {
    if (sent[index] === emptyLine) continue;
    const isFull = rejections.length >= maxRejections;
    const value = isFull
      ? parseQuietly(schema, sent[index])
      : parseOne(schema, sent[index], `/${index}`, rejections);
    if (value !== undefined) items.push({ index, value });
    else if (isFull) more += 1;
  }
  if (more > 0) rejections.push(countedOnly(more));
  return items;
}

/** For items beyond those that are rejected one by one: the reason is not needed, and what is no object is not parsed. */
function parseQuietly<T>(schema: z.ZodType<T>, sent: unknown): T | undefined {
  return typeof sent === 'object' && sent !== null ? schema.safeParse(sent).data : undefined;
}

/** Undefined, and one rejection that names the first problem, where the schema does not fit. */
export function parseOne<T>(
  schema: z.ZodType<T>,
  sent: unknown,
  at: string,
  rejections: Rejection[],
): T | undefined {
  const early = nested.has(schema) && isLarge(sent) ? findFaults(schema, sent) : null;
  const result = early ? null : schema.safeParse(sent);
  if (result?.success) return result.data;
  const [first, ...others] = early ?? result?.error.issues ?? [];
  const path = at + jsonPointer(first?.path ?? []);
  const more = others.length > 0 ? ` (and ${early ? '' : `${others.length} `}more)` : '';
  rejections.push({
    reason: 'invalid-payload',
    message: `${describeIssue(first?.message ?? '')}${more}`,
    path,
  });
  return undefined;
}

/** The faults of the first part that has any: to list all of a large message's takes too long. */
function findFaults(schema: z.ZodType, sent: unknown): PartProblem[] | null {
  for (const { problems } of checkInParts(schema, sent)) if (problems.length > 0) return problems;
  return null;
}
