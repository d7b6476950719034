import { z } from 'zod';

/** What to write instead, by the code of a warning; docs/warnings.md has an example of each. */
const advice = {
  'unreachable-purpose': 'lead to it with gotoPuId from another purpose, or leave it out',
  'unreachable-state':
    'lead to it with gotoStId, make it the initStId, set isGlobal, or leave it out',
  'event-without-causes': 'give it a cause, or leave it out',
  'cause-without-thresholds': 'name a threshold; isAny: true is met by every value',
  'position-and-number':
    'leave either isInsideGeo or the thresholds of numbers out, or write two causes',
  'no-value-fits': 'correct its thresholds',
  'no-device-has-sense': 'correct the sId, or add the sense to the configuration of a device',
  'out-of-range': 'correct the threshold, or min and max of the sense',
  'number-form': 'write + and up to 15 digits, as in +420123456789',
  'number-refused': 'name another number, or ask the operator',
  'sms-not-allowed': 'ask the operator, or leave the SMS out',
  'sms-log-only': 'the operator configures a provider in notifications.sms',
  'push-not-configured': 'the operator configures notifications.push',
  'mail-not-configured': 'the operator sets SMTP_URL',
  'no-recipient': 'add one with PUT /v2/accounts/contacts, or set sendPush to false',
  'not-confirmed': 'follow the link in the mail; POST /v2/accounts/contacts/test sends it again',
  'back-and-forth': 'let one of the two events wait for a value: isGt, isLt or isOneOf',
} as const satisfies Record<string, string>;

export type WarningCode = keyof typeof advice;
export const warningCodes = Object.keys(advice) as WarningCode[];

/** Something that is taken, but probably a mistake. `path`: a JSON Pointer into what was sent. */
export type Warning = { path: string; code: WarningCode; message: string };

/** `what`: what will happen, or will not. The message says that, and what to write instead. */
export function warning(code: WarningCode, path: string, what: string): Warning {
  return { path, code, message: `${what}; ${advice[code]}` };
}

/** As answers have them. */
export const Warnings = z
  .array(z.object({ path: z.string(), code: z.string(), message: z.string() }))
  .meta({
    description:
      'What is allowed, but probably a mistake, a hundred at most. Nothing was refused because of it. ' +
      '`code` is stable, for programs: docs/warnings.md lists them. `path` is a JSON Pointer into what was sent.',
  });
