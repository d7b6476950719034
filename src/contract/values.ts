import { z } from 'zod';

/** Whole numbers. Unlike zod's own, it does not stop parsing at a fraction, so further problems are listed too. */
export function integer(min: number, max: number) {
  return z
    .number()
    .multipleOf(1, 'expected a whole number')
    .min(min)
    .max(max)
    .meta({ type: 'integer' });
}

/** The range of both the database's `integer` and a firmware's `int32_t`. */
export const integer32 = integer(-(2 ** 31), 2 ** 31 - 1);

const longest = { ms: 31 * 24 * 60 * 60_000, words: '31 days' };
type Limit = typeof longest;

/** A duration in ms. Errors also give the limits in words, because many people write seconds. */
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

/** What a cause can compare of the values of a period in place of each value; `stddev` is that of the population. */
export const OverStat = z.enum(['avg', 'sum', 'delta', 'min', 'max', 'stddev']);
export type OverStat = z.infer<typeof OverStat>;

/**
 * A string that every store accepts unchanged: no NUL (PostgreSQL has none in text) and no half of a surrogate pair
 * (UTF-8 has none).
 */
export const Text = textOr();

/** The same with its own message for values that are not strings. */
export function textOr(message?: string): z.ZodString {
  return z
    .string(message)
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'expected text without NUL');
}

export const maxLabels = 20;
const maxLabelLength = 64;

/** A word that groups devices and contacts: 1 to 64 characters. */
export const Label = Text.min(1).refine(
  (text) => Array.from(text).length <= maxLabelLength,
  `expected at most ${maxLabelLength} characters`,
);

/** Up to 20 labels, each once. */
export const Labels = z
  .array(Label)
  .max(maxLabels)
  .refine((labels) => new Set(labels).size === labels.length, 'expected each label once');

/** The language of messages to people. */
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

/** The value that arrived last for a millisecond; undefined if there is none. `last`: set if it is not among `vals`. */
export function lastOf(
  newest: { vals: readonly Measurement['val'][]; last?: Measurement['val'] } | undefined,
): Measurement['val'] | undefined {
  return newest?.last ?? newest?.vals.at(-1);
}

/**
 * A phone number in ITU-T E.164 form, `+` and up to 15 digits, without the separators that people write. A `(0)` after
 * the country code is dialled only within the country, and dropped. Null for anything else: a provider might take
 * `client:admin` or `whatsapp:+…` for an address too.
 */
export function normalizePhoneNumber(text: string): string | null {
  const number = withoutTrunkZero(text).replaceAll(/[\s().\-/\u2010-\u2015]/g, '');
  return /^\+[1-9]\d{1,14}$/.test(number) ? number : null;
}

/** Italy, San Marino and the Vatican: their numbers keep the zero from abroad (ITU-T E.164, national plans). */
const keepsZero = /^\+\s*(39|378|379)$/;

/**
 * Removes the trunk zero of `+49 (0)171 …`, which ITU-T E.123 section 7.3 forbids but people write. Elsewhere in a
 * number the meaning of `(0)` is unknown, and the number is invalid.
 */
function withoutTrunkZero(text: string): string {
  const [before = '', after, ...more] = text.split(/\(\s*0\s*\)/);
  if (after === undefined) return text;
  const code = before.trim();
  if (more.length > 0 || !/^\+\s*[1-9]\d{0,2}$/.test(code)) return '';
  return keepsZero.test(code) ? `${code}0${after}` : `${code}${after}`;
}

/** A place in a profile: the numbers of a purpose and a state. */
export type Place = { puId: number; stId: number };

/** Two nulls are not the same place. */
export function isSamePlace(one: Place | null, other: Place | null): boolean {
  return one !== null && one.puId === other?.puId && one.stId === other.stId;
}

/**
 * Whether a device is reachable. `online`: it has a connection, or a request of it waits for messages. `offline`: it
 * uses MQTT and has no connection. `intermittent`: unknown, because it sends over HTTP without waiting, or through a
 * bridge; when it was last heard says more.
 */
export const presences = ['online', 'offline', 'intermittent'] as const;
type Presence = (typeof presences)[number];

/** The presence of a device. `isIntermittent`: its connector, HTTP or a bridge, keeps no connection to it. */
export function presenceOf(connected: boolean, isIntermittent: boolean): Presence {
  if (connected) return 'online';
  return isIntermittent ? 'intermittent' : 'offline';
}

/** The characters of an unquoted local part (RFC 5322 section 3.2.3, atext). */
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
/** A label of a host name (RFC 1123 section 2.1), including Punycode (RFC 5890). */
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const dotted = (part: string) => `${part}(?:\\.${part})*`;
/**
 * At most 64 octets before the @ (RFC 5321 section 4.5.3.1.1). A host on the local network has one label:
 * root@localhost.
 */
const address = new RegExp(`^(?=.{1,64}@)${dotted(atom)}@${dotted(label)}$`);

/**
 * An unquoted e-mail address in ASCII. Other letters may look alike, and browsers convert an international domain to
 * ASCII (`xn--…`).
 */
export const EmailAddress = z
  .email({ pattern: address, error: 'expected an e-mail address of ASCII characters' })
  .max(254);
