import { z } from 'zod';

/** What to write instead, by the code of a warning; docs/warnings.md has an example of each. */
const advice = {
  'unknown-member': 'leave it out, or begin its name with x- if it is for yourself',
  'unreachable-purpose':
    'it never begins: lead to it with gotoPuId from another purpose, or leave it out',
  'unreachable-state':
    'its events never fire: lead to it with gotoStId, make it the initStId, set isGlobal, or leave it out',
  'event-without-causes': 'give it a cause, or leave it out',
  'cause-without-thresholds': 'name a threshold; isAny: true is met by every value',
  'position-and-number':
    'leave either isInsideGeo or the thresholds of numbers out, or write two causes',
  'no-value-fits': 'correct its thresholds',
  'no-device-has-sense': 'correct the sId, or add the sense to the configuration of a device',
  'out-of-range': 'correct the threshold, or min and max of the sense',
  'incomplete-action': 'add what is missing, or leave the action out',
  'polygon-round-pole': 'split it into polygons that do not go round, each in an event of its own',
  'number-form': 'write + and up to 15 digits, as in +420123456789',
  'number-refused': 'name another number, or ask the operator',
  'sms-not-allowed': 'ask the operator, or leave the SMS out',
  'sms-log-only': 'the operator configures a provider in notifications.sms',
  'push-not-configured': 'the operator configures notifications.push',
  'mail-not-configured': 'the operator sets SMTP_URL',
  'no-recipient': 'add one with PUT /v2/accounts/contacts, or set sendPush to false',
  'not-confirmed': 'follow the link in the mail; POST /v2/accounts/contacts/test sends it again',
  'no-effect': 'leave it out',
  'shorter-than-interval': 'choose a longer time, or have the sense measured more often',
  'short-silence': 'choose more than 15 s beside the interval at which it is measured',
  'always-silent': 'correct the sId, or add the sense to the configuration of the device',
  'told-each-time': 'name a threshold, or set actions.alarm to false if it is meant',
  'endless-alarm': 'name a threshold, or leave actions.alarm out',
  'needs-service-engine': 'let the service evaluate for it, or write the purpose without it',
  'back-and-forth': 'let one of the two events wait for a value: isGt, isLt or isOneOf',
} as const satisfies Record<string, string>;

export type WarningCode = keyof typeof advice;
export const warningCodes = Object.keys(advice) as WarningCode[];

/** Something that is taken, but probably a mistake. `path`: a JSON Pointer into what was sent. */
export type Warning = {
  path: string;
  code: WarningCode;
  message: string;
  /** Of an unknown member: the known name that was meant. */
  meant?: string;
};

/** `what`: what will happen, or will not. The message says that, and what to write `instead`. */
export function warning(
  code: WarningCode,
  path: string,
  what: string,
  instead: string = advice[code],
): Warning {
  return { path, code, message: `${what}; ${instead}` };
}

/** A purpose with more warnings is wrong as a whole: a list of all helps nobody. */
export const maxWarnings = 100;

/** As answers have them. */
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
          .meta({ description: 'Of an unknown member: the known name that was meant.' }),
      })
      .meta({ id: 'Warning' }),
  )
  .meta({
    description:
      'What is allowed, but probably a mistake, a hundred at most. Nothing was refused because of it. ' +
      '`code` is stable, for programs: docs/warnings.md lists them. `path` is a JSON Pointer into what was sent.',
  });

/** What several had to say: each once, a hundred at most. */
export function joinWarnings(...lists: Warning[][]): Warning[] {
  const known = new Map(lists.flat().map((it) => [`${it.code} ${it.path} ${it.message}`, it]));
  return [...known.values()].slice(0, maxWarnings);
}

/** Of answers that the specification gives no warnings: absent where there is nothing to say. */
export const SomeWarnings = Warnings.optional();

/** The member `warnings` of such an answer. */
export const sayWarnings = (warnings: Warning[]): { warnings?: Warning[] } =>
  warnings.length > 0 ? { warnings } : {};
