import { z } from 'zod';

/**
 * Whole numbers. Not zod's own: a fraction would end the parsing there, and what else is wrong would
 * not be listed.
 */
export function integer(min: number, max: number) {
  return z
    .number()
    .multipleOf(1, 'expected a whole number')
    .min(min)
    .max(max)
    .meta({ type: 'integer' });
}

/** What the database's `integer` and a firmware's `int32_t` hold alike. */
export const integer32 = integer(-(2 ** 31), 2 ** 31 - 1);

const longest = { ms: 31 * 24 * 60 * 60_000, words: '31 days' };
type Limit = typeof longest;

/** How long something lasts, in ms. The limits are told in words too: many write seconds. */
export function duration(least: Limit, most: Limit = longest) {
  return z
    .number()
    .multipleOf(1, 'expected a whole number of milliseconds')
    .min(least.ms, `expected milliseconds, at least ${least.ms} (${least.words})`)
    .max(most.ms, `expected milliseconds, at most ${most.ms} (${most.words})`)
    .meta({ type: 'integer' });
}

export const oneSecond: Limit = { ms: 1_000, words: '1 s' };
export const oneMinute: Limit = { ms: 60_000, words: '1 minute' };

/**
 * A string that every store holds as it is: no NUL (PostgreSQL has none in text) and no half of a
 * surrogate pair (UTF-8 has none).
 */
export const Text = textOr();

/** The same with words of its own for what is no string. */
export function textOr(message?: string): z.ZodString {
  return z
    .string(message)
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL');
}

export const maxLabels = 20;
const maxLabelLength = 64;

/** A word that devices and contacts are sorted by: 1 to 64 characters. */
const Label = Text.min(1).refine(
  (text) => Array.from(text).length <= maxLabelLength,
  `expected at most ${maxLabelLength} characters`,
);

/** Up to 20 of them, each once. */
export const Labels = z
  .array(Label)
  .max(maxLabels)
  .refine((labels) => new Set(labels).size === labels.length, 'expected each label once');

/** What messages to people are written in. */
export const Language = z.enum(['en', 'de']).meta({ id: 'Language' });
export type Language = z.infer<typeof Language>;

/** A place on Earth in degrees (WGS 84). */
export const Position = z
  .object({
    lat: z.number().min(-90).max(90),
    long: z.number().min(-180).max(180),
  })
  .meta({ id: 'Position', description: 'A place on Earth in degrees (WGS 84).' });
export type Position = z.infer<typeof Position>;

/** What one sense measured at one moment; `ts` in milliseconds since the Unix epoch. */
export type Measurement = { sId: string; val: number | Position; ts: number };

/** The last to come of the values of one millisecond; undefined where there is none. `last`: where it is not among `vals`. */
export function lastOf(
  newest: { vals: readonly Measurement['val'][]; last?: Measurement['val'] } | undefined,
): Measurement['val'] | undefined {
  return newest?.last ?? newest?.vals.at(-1);
}

/**
 * A telephone number as ITU-T E.164 has it, `+` and up to 15 digits, without what people put between
 * them. A `(0)` behind the country code is dialled within the country alone, and dropped. Null for anything else: a
 * provider may take `client:admin` or `whatsapp:+…` for an address too.
 */
export function normalizePhoneNumber(text: string): string | null {
  const number = withoutTrunkZero(text).replaceAll(/[\s().\-/\u2010-\u2015]/g, '');
  return /^\+[1-9]\d{1,14}$/.test(number) ? number : null;
}

/** Italy, San Marino and the Vatican: their numbers have the zero from abroad too (ITU-T E.164, national plans). */
const keepsZero = /^\+\s*(39|378|379)$/;

/**
 * `+49 (0)171 …` as ITU-T E.123 section 7.3 forbids, and people write all the same. Elsewhere in a number `(0)` says
 * nothing that can be known, and is left as what no number has.
 */
function withoutTrunkZero(text: string): string {
  const [before = '', after, ...more] = text.split(/\(\s*0\s*\)/);
  if (after === undefined) return text;
  const code = before.trim();
  if (more.length > 0 || !/^\+\s*[1-9]\d{0,2}$/.test(code)) return '';
  return keepsZero.test(code) ? `${code}0${after}` : `${code}${after}`;
}

/** A place in a profile: purpose and state number. */
export type Place = { puId: number; stId: number };

/** Nowhere is no place: two nulls are not the same one. */
export function isSamePlace(one: Place | null, other: Place | null): boolean {
  return one !== null && one.puId === other?.puId && one.stId === other.stId;
}

/**
 * Whether a device is there. `online`: it has a connection, or a request of it waits for messages. `offline`: it
 * speaks MQTT and has none. `intermittent`: nobody can tell, because it sends over HTTP without waiting, or through
 * a bridge; when it was heard last says more.
 */
export const presences = ['online', 'offline', 'intermittent'] as const;
type Presence = (typeof presences)[number];

/** Of a device that is connected, or was heard last, where `isIntermittent` says of which kind. */
export function presenceOf(connected: boolean, isIntermittent: boolean): Presence {
  if (connected) return 'online';
  return isIntermittent ? 'intermittent' : 'offline';
}

/** What an unquoted local part is made of (RFC 5322 section 3.2.3, atext). */
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
/** A label of a host's name (RFC 1123 section 2.1), also one in Punycode (RFC 5890). */
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const dotted = (part: string) => `${part}(?:\\.${part})*`;
/** At most 64 octets before the @ (RFC 5321 section 4.5.3.1.1). A host on the own network has one label: root@localhost. */
const address = new RegExp(`^(?=.{1,64}@)${dotted(atom)}@${dotted(label)}$`);

/**
 * An e-mail address that is not quoted. ASCII alone: beyond it letters look alike, and what a browser makes of an
 * international domain is ASCII (`xn--…`).
 */
export const EmailAddress = z
  .email({ pattern: address, error: 'expected an e-mail address of ASCII characters' })
  .max(254);
