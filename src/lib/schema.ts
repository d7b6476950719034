import type { z } from 'zod';
import { partsOf } from './schema-parts.ts';

/** What a schema knows, member by member: made once of a schema, so that values are looked through quickly. */
export type KnownMembers = {
  /** Null: it is no object, or takes members of any name. */
  members: ReadonlyMap<string, KnownMembers> | null;
  /** Of an array; null: it is none. */
  elements: KnownMembers | null;
};

/** A member that the schema does not know. `within`: the object it stands in, and those around that one. */
export type UnknownMember = { path: PropertyKey[]; name: string; within: KnownMembers[] };

type Place = { parent: Place | null; key: PropertyKey; known: KnownMembers };

const nothing: KnownMembers = { members: null, elements: null };
const made = new WeakMap<z.core.$ZodType, KnownMembers>();

/** What the schema knows; kept with it. Of a union every option is known. */
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

/** What any of these knows: a body may have what its answer has, so that it can be sent back. */
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

/** Names that anybody may add for themselves. */
export const isPrivateName = (name: string): boolean => name.startsWith('x-');

/** Whether there is such a member; makes nothing, for what is asked of every message. */
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

/** The members that nothing knows, in the order of the document, `max` at most. Costs less than parsing. */
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
