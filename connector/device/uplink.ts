import type { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import { countedOnly, type Rejection } from '../../src/contract/rejection.ts';
import { EventReport, type Item, maxItems } from '../../src/contract/uplink.ts';
import { checkInParts, isLarge, type PartProblem } from '../../src/lib/check-parts.ts';
import { describeIssue } from '../../src/lib/issue-message.ts';
import { maxJsonParts, measureJson } from '../../src/lib/json-extent.ts';
import { jsonPointer } from '../../src/lib/json-pointer.ts';
import { decodeUtf8, findJsonError, tellJsonError } from '../../src/lib/json.ts';

/** How a payload is to be read: one JSON text, or an item on each line. */
export type PayloadFormat = 'json' | 'ndjson';

/** Beyond so many bytes a payload is large: it may have fewer parts, and counts as more measurements. */
export const largeBytes = 65_536;
/** A thousand positions with their times have 7,000. */
const maxLargeParts = 12_000;

/** The text of a payload. Null, and a rejection, where it is none or has too many parts to be parsed. */
export function readText(payload: Buffer, rejections: Rejection[]): string | null {
  const text = decodeUtf8(payload);
  if (text === null) {
    rejections.push({ reason: 'invalid-json', message: 'The payload is not UTF-8.' });
    return null;
  }
  const max = payload.length > largeBytes ? maxLargeParts : maxJsonParts;
  if (text.length > max && measureJson(text, Infinity, max).parts > max) {
    const message = `The payload has more than ${max} {, [ and , beside its texts.`;
    rejections.push({ reason: 'invalid-payload', message, path: '' });
    return null;
  }
  return text;
}

/** Undefined, and a rejection, where it is no JSON. */
export function parseJson(text: string, rejections: Rejection[]): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `The payload is not JSON: ${whyNoJson(text, error)}`;
    rejections.push({ reason: 'invalid-json', message });
    return undefined;
  }
}

/** Longer texts are not read twice: a device may send many of them. */
const longText = 16_384;

/** What is wrong, and where in a short text; of a longer one what JSON.parse says. */
function whyNoJson(text: string, error: unknown, isLine = false): string {
  const found = text.length > longText ? null : findJsonError(text);
  if (found === null) return error instanceof Error ? error.message : '';
  const told = tellJsonError(found).replaceAll('the end of the file', 'the end of the payload');
  return isLine
    ? told.replace(/^line \d+, /, '').replaceAll('of the payload', 'of the line')
    : told;
}

/**
 * The items of lines; what is no JSON is a rejection, and undefined in its place. Undefined where there are too
 * many, or where none can be read. A line that is empty counts, and is no item.
 */
export function parseLines(text: string, rejections: Rejection[], maxRejections: number): unknown {
  const lines = text.split('\n', maxItems + 2);
  if (lines.length > maxItems + 1) return tooManyItems(countLines(text), rejections);
  if (lines.at(-1)?.trim() === '') lines.pop();
  if (lines.length > maxItems) return tooManyItems(lines.length, rejections);
  let more = 0;
  const items = lines.map((line, index) => {
    if (line.trim() === '') return emptyLine;
    try {
      return JSON.parse(line) as unknown;
    } catch (error) {
      const message = `Line ${index + 1} is not JSON: ${whyNoJson(line, error, true)}`;
      if (rejections.length >= maxRejections) more += 1;
      else rejections.push({ reason: 'invalid-json', message, path: `/${index}` });
      return emptyLine;
    }
  });
  if (more > 0) rejections.push(countedOnly(more));
  if (lines.length === 0)
    rejections.push({ reason: 'invalid-json', message: 'The payload has no lines.' });
  return items.every((item) => item === emptyLine) ? undefined : items;
}

/** Without an array of them: there may be a quarter of a million. */
function countLines(text: string): number {
  let lines = text.slice(text.lastIndexOf('\n') + 1).trim() === '' ? 0 : 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === 0x0a) lines += 1;
  return lines;
}

/** Stands for a line that is no item. JSON has no such value. */
const emptyLine = undefined;

/** Rejects a message as a whole. */
function tooManyItems(count: number, rejections: Rejection[]): undefined {
  const message = `${count} items in one message; at most ${maxItems} are taken.`;
  rejections.push({ reason: 'invalid-payload', message, path: '' });
}

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
