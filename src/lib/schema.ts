import type { z } from 'zod';
import { partsOf } from './schema-parts.ts';

/** A checked part of a value: its approximate size, and its problems. */
type CheckedPart = { size: number; problems: PartProblem[] };

export type PartProblem = { path: PropertyKey[]; message: string };

/** The most members that are checked at once, nested ones included. */
const maxPartSize = 500;

/** Whether a value is so large that checking it at once, with all its problems, takes long. */
export function isLarge(value: unknown): boolean {
  return sizeOf(value) > maxPartSize;
}

/**
 * Checks the members of a large value one by one, so that the caller may stop after enough problems or yield in
 * between. (A schema lists all problems, and an invalid member costs more than a valid one.) Every problem it finds is
 * real, but rules on a large value as a whole are not checked.
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

/** Kinds of schemas that check a present value just as the inner schema does. */
const wrappers = new Set(['optional', 'nullable', 'default', 'prefault']);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Counts members, nested ones included. Stops once the value counts as large. */
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

/**
 * Rewrites the library's message in the form of the schemas' own: what was expected, and what was found. "Invalid
 * input: expected number, received undefined" does not even say that it is missing.
 */
export function describeIssue(message: string): string {
  return message
    .replace(/^(?:Invalid (?:input|option)|Too (?:small|big)): (?=expected )/, '')
    .replace(/, received undefined$/, ', found nothing')
    .replace(/, received (?=\S+$)/, ', found ')
    .replaceAll('"|"', '", "');
}

/** The known members of a schema, computed once so that values can be searched quickly. */
export type KnownMembers = {
  /** Null: it is no object, or accepts members of any name. */
  members: ReadonlyMap<string, KnownMembers> | null;
  /** For an array, its elements; null: it is none. */
  elements: KnownMembers | null;
};

/** A member that the schema does not know. `within`: the object that contains it, and the objects around that. */
export type UnknownMember = { path: PropertyKey[]; name: string; within: KnownMembers[] };

type Place = { parent: Place | null; key: PropertyKey; known: KnownMembers };

const nothing: KnownMembers = { members: null, elements: null };
const made = new WeakMap<z.core.$ZodType, KnownMembers>();

/** The known members of a schema, cached. For a union, the members of every option. */
export function knownOf(schema: z.core.$ZodType): KnownMembers {
  const before = made.get(schema);
  if (before) return before;
  const known = make(schema);
  made.set(schema, known);
  return known;
}

function make(schema: z.core.$ZodType): KnownMembers {
  const parts = partsOf(schema);
  switch (parts.kind) {
    case 'wrapped':
      return knownOf(parts.inner);
    case 'pipe':
      return knownOf(parts.from);
    case 'array':
      return { members: null, elements: knownOf(parts.element) };
    case 'union':
      return parts.options.map(knownOf).reduce(merge, nothing);
    case 'object': {
      const members = Object.entries(parts.members).map(
        ([name, it]) => [name, knownOf(it)] as const,
      );
      return { members: parts.isOpen ? null : new Map(members), elements: null };
    }
    case 'other':
      return nothing;
  }
}

/** The members that any of these schemas knows: a body may repeat members of its answer. */
export const knownOfAll = (schemas: readonly z.core.$ZodType[]): KnownMembers =>
  schemas.map(knownOf).reduce(merge, nothing);

function merge(one: KnownMembers, other: KnownMembers): KnownMembers {
  const members = new Map(one.members ?? []);
  for (const [name, known] of other.members ?? []) {
    const before = members.get(name);
    members.set(name, before ? merge(before, known) : known);
  }
  const isObject = one.members !== null || other.members !== null;
  const elements =
    one.elements && other.elements
      ? merge(one.elements, other.elements)
      : (one.elements ?? other.elements);
  return { members: isObject ? members : null, elements };
}

/** Names that anybody may use for their own purposes. */
export const isPrivateName = (name: string): boolean => name.startsWith('x-');

/** Whether there is an unknown member. Allocates nothing, because every message is checked. */
export function hasUnknownMember({ members, elements }: KnownMembers, value: unknown): boolean {
  if (!isNested(value)) return false;
  if (Array.isArray(value)) {
    if (elements === null) return false;
    for (let index = 0; index < value.length; index += 1)
      if (hasUnknownMember(elements, value[index])) return true;
    return false;
  }
  if (members === null) return false;
  for (const name in value) {
    const known = members.get(name);
    if (known === undefined) {
      if (!isPrivateName(name)) return true;
    } else if (known !== nothing && hasUnknownMember(known, value[name])) return true;
  }
  return false;
}

/** The unknown members in document order, at most `max`. Costs less than parsing. */
export function findUnknownMembers(
  known: KnownMembers,
  value: unknown,
  max: number,
): UnknownMember[] {
  const found: UnknownMember[] = [];
  visit({ parent: null, key: '', known }, value, found, max);
  return found;
}

function visit(place: Place, value: unknown, found: UnknownMember[], max: number): void {
  const { members, elements } = place.known;
  if (Array.isArray(value)) {
    if (elements === null) return;
    for (let key = 0; key < value.length && found.length < max; key += 1)
      if (isNested(value[key]))
        visit({ parent: place, key, known: elements }, value[key], found, max);
    return;
  }
  if (members === null || !isNested(value)) return;
  for (const name in value) {
    if (found.length >= max) return;
    const known = members.get(name);
    const inner = value[name];
    if (known === undefined) {
      if (!isPrivateName(name)) found.push(describe(place, name));
    } else if (isNested(inner)) visit({ parent: place, key: name, known }, inner, found, max);
  }
}

const isNested = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

function describe(place: Place, name: string): UnknownMember {
  const path: PropertyKey[] = [name];
  const within: KnownMembers[] = [];
  for (let at = place; ; at = at.parent) {
    within.push(at.known);
    if (at.parent === null) return { path, name, within };
    path.unshift(at.key);
  }
}

const maxDifferent = 2;
/** Longer names are not misspellings. */
const maxLength = 64;

/**
 * The name that was probably meant: the one with the fewest different letters, at most two, and fewer than the name
 * has. Case, `_` and `-` are ignored. Null if none is that close.
 */
export function nearestName(name: string, names: Iterable<string>): string | null {
  if (name.length > maxLength) return null;
  const plain = plainly(name);
  let nearest: string | null = null;
  let fewest = Math.min(maxDifferent, plain.length - 1) + 1;
  for (const candidate of names) {
    const different = countDifferent(plain, plainly(candidate));
    if (different >= fewest || different >= candidate.length) continue;
    nearest = candidate;
    fewest = different;
  }
  return nearest;
}

const plainly = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');

/** Levenshtein distance: letters added, omitted or replaced. A swap of neighbours counts as one. */
function countDifferent(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > maxDifferent) return Infinity;
  let [before, last]: number[][] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        (last?.[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last?.[j - 1] ?? 0) + (isSame ? 0 : 1),
        i > 1 && j > 1 && isSwapped ? (before?.[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    [before, last] = [last, row];
  }
  return last?.[other.length] ?? Infinity;
}
