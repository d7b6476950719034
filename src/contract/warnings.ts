import { z } from 'zod';
import { jsonPointer } from '../lib/json.ts';
import {
  findUnknownMembers,
  type KnownMembers,
  knownOf,
  knownOfAll,
  nearestName,
  type UnknownMember,
} from '../lib/schema.ts';
import { type Actions, listPhoneMessages, type PhoneChannel } from './actions.ts';
import type { Purpose, PurposePath } from './purpose.ts';
import { normalizePhoneNumber, Position } from './values.ts';

/** What to write instead, by warning code. docs/warnings.md has an example of each. */
const hints = {
  'unknown-member': 'remove it, or start its name with x- if it is for your own use',
  'unreachable-purpose':
    'it can never become active: point gotoPuId of another purpose at it, or remove it',
  'unreachable-state':
    'its events never fire: point gotoStId at it, make it the initStId, set isGlobal, or remove it',
  'event-without-causes': 'give it a cause, or remove it',
  'cause-without-thresholds': 'set a threshold; isAny: true matches every value',
  'position-and-number': 'remove either isInsideGeo or the numeric thresholds, or write two causes',
  'no-value-fits': 'correct its thresholds',
  'no-device-has-sense': 'correct the sId, or add the sense to the configuration of a device',
  'out-of-range': 'correct the threshold, or min and max of the sense',
  'incomplete-action': 'add what is missing, or remove the action',
  'polygon-round-pole': 'split it into polygons that do not enclose a pole, each in its own event',
  'number-form': 'write + and up to 15 digits, as in +420123456789',
  'number-refused': 'use another number, or ask the operator',
  'sms-not-allowed': 'ask the operator, or remove the SMS',
  'sms-log-only': 'the operator configures a provider in notifications.sms',
  'push-not-configured': 'the operator configures notifications.push',
  'mail-not-configured': 'the operator sets SMTP_URL',
  'no-recipient': 'add one with PUT /v2/accounts/contacts, or set sendPush to false',
  'not-confirmed': 'open the link in the e-mail; POST /v2/accounts/contacts/test sends it again',
  'too-mild': 'raise actions.severity, or lower minSeverity of a contact',
  'no-effect': 'remove it',
  'shorter-than-interval': 'choose a longer duration, or have the sense measured more often',
  'short-silence': 'choose more than 15 s plus the interval at which the sense is measured',
  'always-silent': 'correct the sId, or add the sense to the configuration of the device',
  'told-each-time': 'set a threshold, or set actions.alarm to false if this is intended',
  'endless-alarm': 'set a threshold, or remove actions.alarm',
  'needs-service-engine':
    "let the service evaluate the device's profiles, or remove the member from the purpose",
  'back-and-forth': 'let one of the two events wait for a value: isGt, isLt or isOneOf',
  'causes-exclude': 'write an event for each, or let them read different senses',
  'never-fires':
    'an event before it moves the device first, or its causes never hold together: put it before that event, or remove it',
  'fires-on-every-value': 'correct the limit; isAny: true says that every value is meant',
  'told-often':
    'let the event wait (forMs, count), open an alarm, which tells once, or notify nobody',
} as const satisfies Record<string, string>;

export type WarningCode = keyof typeof hints;
export const warningCodes = Object.keys(hints) as WarningCode[];

/** Valid input that is probably a mistake. `path`: a JSON Pointer into what was sent. */
export type Warning = {
  path: string;
  code: WarningCode;
  message: string;
  /** For an unknown member: the known name that was probably meant. */
  meant?: string;
  /** What shows it, from the moment at which the first of the purposes becomes current. */
  witness?: WitnessStep[];
};

/** `what`: the consequence. The message consists of that and of what to write `instead`. */
export function warning(
  code: WarningCode,
  path: string,
  what: string,
  instead: string = hints[code],
): Warning {
  return { path, code, message: `${what}; ${instead}` };
}

/**
 * What happens to a device after `afterMs`: a measurement, `times` times (1 if absent), each so much later than the one
 * before; without `sId` only time passes.
 */
export const WitnessStep = z
  .object({
    afterMs: z.number(),
    sId: z.string().optional(),
    val: z.union([z.number(), Position]).optional(),
    times: z.int().optional(),
  })
  .meta({
    id: 'WitnessStep',
    description:
      'What happens after `afterMs`: a measurement, `times` times (1 if absent), each so much later than the one ' +
      'before; without `sId` only time passes.',
  });
export type WitnessStep = z.infer<typeof WitnessStep>;

/** The most warnings that are listed: a purpose with more is wrong as a whole. */
export const maxWarnings = 100;

/** Warnings in answers. */
export const Warnings = z
  .array(
    z
      .object({
        path: z.string(),
        code: z.string(),
        message: z.string(),
        meant: z
          .string()
          .optional()
          .meta({ description: 'For an unknown member: the known name that was probably meant.' }),
        witness: z.array(WitnessStep).optional().meta({
          description: 'What shows it, from the moment at which the purposes become current.',
        }),
      })
      .meta({ id: 'Warning' }),
  )
  .meta({
    description:
      'Valid input that is probably a mistake; at most 100 entries. Nothing was rejected ' +
      'because of it. `code` is stable and meant for programs: docs/warnings.md lists the ' +
      'codes. `path` is a JSON Pointer into the request.',
  });

/** Members of answers to what stores or installs purposes. */
export const Warned = {
  warnings: Warnings,
  explored: z
    .enum(['unknown'])
    .optional()
    .meta({
      description:
        'What the purposes can do was not found out in time, so `warnings` may lack what that shows: ' +
        '`GET /v2/purposes/{purposeUuid}/cases` says it of a stored purpose. Absent: it was, or nothing was tried, as ' +
        'with `purposes.exploreMs` 0, or where a request that had succeeded before is repeated.',
    }),
};
export type Warned = { warnings: Warning[]; explored?: 'unknown' };

/** `explored`: what exploring shows to be warned of, which is among `warnings`; null: that took too long. */
export const warned = (warnings: Warning[], explored: Warning[] | null): Warned =>
  explored === null ? { warnings, explored: 'unknown' } : { warnings };

/** All warnings of several lists, without duplicates, of which the last counts; at most a hundred. */
export function joinWarnings(...lists: Warning[][]): Warning[] {
  const known = new Map(lists.flat().map((it) => [`${it.code} ${it.path} ${it.message}`, it]));
  return [...known.values()].slice(0, maxWarnings);
}

/** For answers to which the specification gives no warnings: absent if there are none. */
export const SomeWarnings = Warnings.optional();

/** The member `warnings` of such an answer. */
export const sayWarnings = (warnings: Warning[]): { warnings?: Warning[] } =>
  warnings.length > 0 ? { warnings } : {};

/** What people write instead of a known name. The first known name that is valid in that place was meant. */
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

/**
 * Warns of members that the schema does not know, at most a hundred, each with the known name that was probably meant.
 */
export function warnOfUnknown(schema: z.core.$ZodType, value: unknown): Warning[] {
  return warnBeyond(knownOf(schema), value);
}

/** The same for members that none of several schemas knows: a body may be an answer sent back. */
export function warnOfUnknownTo(...schemas: z.core.$ZodType[]) {
  const known = knownOfAll(schemas);
  return (_schema: z.core.$ZodType, value: unknown): Warning[] => warnBeyond(known, value);
}

function warnBeyond(known: KnownMembers, value: unknown): Warning[] {
  return findUnknownMembers(known, value, maxWarnings).map((member) => {
    const meant = findMeant(member);
    const what = `unknown member ${shorten(member.name)} has no effect`;
    const path = jsonPointer(member.path);
    if (meant === null) return warning('unknown-member', path, what);
    return { ...warning('unknown-member', path, what, `did you mean ${meant}?`), meant };
  });
}

const shorten = (name: string) => (name.length > 64 ? `${name.slice(0, 63)}…` : name);

/**
 * The known name that was probably meant: a synonym, a member of an object beside it (`thresholds.isGt`), the nearest
 * name, or a member of one of the objects around it. Null if nothing is similar.
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

/** A member with that name of an object beside it. */
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

/** Warns of actions that do nothing because something is missing. */
export function warnOfActions(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  const warnings: Warning[] = [];
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions`;
        for (const [name, what] of lacking(actions))
          warnings.push(warning('incomplete-action', `${path}/${name}`, what));
      }
  return warnings;
}

function lacking(actions: Actions): [name: string, what: string][] {
  const { engine, display } = actions;
  const found: [string, string][] = [];
  for (const { channel, called, text, phoneNumber } of listPhoneMessages(actions))
    if (!text) found.push([channel, `no ${called} will be sent: it has no text`]);
    else if (phoneNumber.length === 0)
      found.push([channel, `no ${called} will be sent: it has no phoneNumber`]);
  if (engine && engine.gotoStId === undefined && engine.gotoPuId === undefined)
    found.push(['engine', 'the device will not move: there is no gotoStId and no gotoPuId']);
  if (display && display.showText === undefined)
    found.push(['display', 'the device will show nothing: there is no showText']);
  return found;
}

/** Warns of phone numbers that are not in E.164 form: no provider can reach them. */
export function warnOfNumberForms(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  const warnings: Warning[] = [];
  for (const { phoneNumber, called, path } of listPhoneNumbers(purposes, pathOf)) {
    if (warnings.length >= maxWarnings) break;
    if (normalizePhoneNumber(phoneNumber) !== null) continue;
    const what = `no ${called} will be sent to ${phoneNumber}: not a valid E.164 phone number`;
    warnings.push(warning('number-form', path, what));
  }
  return warnings;
}

/** The telephone numbers of actions, with their places; `called` is what people call the message. */
export function* listPhoneNumbers(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const { phoneNumbers, called, path } of listPhoneTexts(purposes, pathOf))
    for (const [n, phoneNumber] of phoneNumbers.entries())
      yield { phoneNumber, called, path: `${path}/phoneNumber/${n}` };
}

type PhoneText = { channel: PhoneChannel; called: string; phoneNumbers: string[]; path: string };

/** The actions that have a text and a telephone number, with their places. */
export function* listPhoneTexts(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
): Generator<PhoneText> {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries())
        for (const { channel, called, text, phoneNumber } of listPhoneMessages(actions)) {
          const path = `${pathOf(index)}/states/${s}/events/${e}/actions/${channel}`;
          if (text && phoneNumber.length > 0)
            yield { channel, called, phoneNumbers: phoneNumber, path };
        }
}
