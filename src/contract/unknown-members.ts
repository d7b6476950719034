import type { z } from 'zod';
import { jsonPointer } from '../lib/json-pointer.ts';
import {
  findUnknownMembers,
  type KnownMembers,
  knownOf,
  knownOfAll,
  type UnknownMember,
} from '../lib/schema.ts';
import { nearestName } from '../lib/nearest-name.ts';
import { maxWarnings, warning, type Warning } from './warnings.ts';

/** What people write, by what is known: the first that stands where they wrote it was meant. */
const synonyms: Record<string, readonly string[]> = {
  isGt: ['isAbove', 'above', 'gt', 'greaterThan', 'isGreaterThan', 'min'],
  isLt: ['isBelow', 'below', 'lt', 'lessThan', 'isLessThan', 'max'],
  isOneOf: ['equals', 'isEqual', 'isEqualTo', 'eq', 'in', 'oneOf'],
  isNotIn: ['notEquals', 'isNot', 'notIn', 'notOneOf'],
  isInsideGeo: ['inside', 'polygon', 'geofence'],
  phoneNumber: ['phoneNumbers', 'phone', 'number', 'numbers', 'to'],
  text: ['message', 'body'],
  sendPush: ['push', 'notify', 'sendNotification', 'email', 'mail', 'webhook', 'fcm'],
  emails: ['email', 'mail'],
  webhooks: ['webhook', 'hooks'],
  address: ['email', 'mail', 'to'],
  url: ['webhook', 'uri', 'link'],
  apn: ['apns', 'pushTokens', 'tokens', 'fcm'],
  long: ['lon', 'lng', 'longitude'],
  lat: ['latitude'],
  val: ['value', 'v'],
  ts: ['timestamp', 'time', 't'],
  sId: ['sense', 'senseId', 'sensor', 'sensorId', 'id'],
  module: ['modules'],
  senses: ['sensors', 'sense'],
  moduleId: ['id'],
  minInterval: ['interval'],
  timeZone: ['timezone', 'tz'],
  language: ['locale', 'lang'],
  initStId: ['initialState', 'initState'],
  forMs: ['for', 'duration', 'durationMs', 'lastsMs'],
  noneForMs: ['silentForMs', 'noDataMs', 'timeoutMs'],
  repeatMs: ['repeat', 'repeatEvery', 'repeatEveryMs'],
  gotoStId: ['goto', 'target', 'state'],
};

/** All that the schema does not know of a value, a hundred at most, each with the known name that was meant. */
export function warnOfUnknown(schema: z.core.$ZodType, value: unknown): Warning[] {
  return warnBeyond(knownOf(schema), value);
}

/** The same of what none of several schemas knows: of a body that may be an answer sent back. */
export function warnOfUnknownTo(...schemas: z.core.$ZodType[]) {
  const known = knownOfAll(schemas);
  return (_schema: z.core.$ZodType, value: unknown): Warning[] => warnBeyond(known, value);
}

function warnBeyond(known: KnownMembers, value: unknown): Warning[] {
  return findUnknownMembers(known, value, maxWarnings).map((member) => {
    const meant = findMeant(member);
    const what = `there is no member ${shorten(member.name)} here, and it has no effect`;
    const path = jsonPointer(member.path);
    if (meant === null) return warning('unknown-member', path, what);
    return { ...warning('unknown-member', path, what, `did you mean ${meant}?`), meant };
  });
}

const shorten = (name: string) => (name.length > 64 ? `${name.slice(0, 63)}…` : name);

/**
 * The known name that was meant: a synonym's, one that stands in an object beside it (`thresholds.isGt`),
 * the nearest one, or one of the objects around it. Null where nothing is alike.
 */
function findMeant({ name, within }: Pick<UnknownMember, 'name' | 'within'>): string | null {
  const [here, ...around] = within;
  if (!here) return null;
  const meant = Object.keys(synonyms).filter((known) => synonyms[known]?.includes(name));
  const wanted = [...meant, name];
  const outside = () => around.some((known) => known.members?.has(name)) && `${name} further out`;
  return (
    firstOf(wanted, (known) => (here.members?.has(known) ? known : null)) ??
    firstOf(wanted, (known) => findInside(here, known)) ??
    nearestName(name, here.members?.keys() ?? []) ??
    (outside() || null)
  );
}

/** The member of an object beside it that is called like that. */
function findInside(here: KnownMembers, name: string): string | null {
  for (const [beside, { members }] of here.members ?? [])
    if (members?.has(name)) return `${beside}.${name}`;
  return null;
}

function firstOf(names: string[], find: (name: string) => string | null): string | null {
  for (const name of names) {
    const found = find(name);
    if (found !== null) return found;
  }
  return null;
}
