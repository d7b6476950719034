import type { OverStat } from '../api/types.ts';
import { clock } from '../app/now.ts';
import { accountOf } from '../app/session.ts';
import { locale, t } from './t.ts';
import { sayDay, sayFullTime, sayTime } from './time.ts';

/** The reader's locale and time zone. */
const reader = () => ({
  locale: locale(),
  timeZone: accountOf()?.timeZone,
  nowTs: clock.value,
});

/** A time as people say it, in the account's time zone; without the date if it is today. */
export const formatTime = (ts: number): string => sayTime(ts, reader());

/** The full time, to the second, with its zone. */
export const formatFullTime = (ts: number): string => sayFullTime(ts, reader());

const units = [
  ['second', 1_000, 60],
  ['minute', 60_000, 60],
  ['hour', 3_600_000, 24],
  ['day', 86_400_000, 60],
] as const;

/** How long ago; the date if that is more than two months. */
export function formatAgo(ts: number | null): string {
  if (ts === null) return t('common.never');
  const ageMs = Math.max(0, clock.value - ts);
  for (const [unit, ms, limit] of units) {
    const number = Math.floor(ageMs / ms);
    if (number < limit) return unit === 'second' ? t('common.justNow') : ago(-number, unit);
  }
  return sayDay(ts, reader());
}

const ago = (number: number, unit: Intl.RelativeTimeFormatUnit) =>
  new Intl.RelativeTimeFormat(locale(), { numeric: 'auto', style: 'short' }).format(number, unit);

type Shown = { unit?: string | undefined; decimals?: number | undefined };

/** A number with its sense's decimals, or as many as it needs where these are not known; without the unit. */
export function formatNumber(value: number, decimals?: number): string {
  const text = numberFormat(digitsOf(Math.abs(value), decimals)).format(value);
  // A number rounded to 0 has no sign.
  return /[1-9]/.test(text) ? text : text.replace(/^[-\u2212]/, '');
}

/** Nobody reads a number of three hundred digits, and a number other than 0 must not look like 0. */
function digitsOf(size: number, decimals: number | undefined): Intl.NumberFormatOptions {
  if (size >= 1e15) return { notation: 'scientific', maximumFractionDigits: 3 };
  if (decimals !== undefined)
    return { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return size > 0 && size < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 3 };
}

const formats = new Map<string, Intl.NumberFormat>();

/** A table has thousands of numbers: making a format takes longer than using it a hundred times. */
function numberFormat(digits: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${locale()} ${JSON.stringify(digits)}`;
  const known = formats.get(key);
  if (known) return known;
  const made = new Intl.NumberFormat(locale(), digits);
  formats.set(key, made);
  return made;
}

/** A number that somebody typed: with all its digits, and at least its sense's decimals. */
export function formatTyped(value: number, { unit, decimals = 0 }: Shown = {}): string {
  const [, digits = '', exponent] = /^-?\d+(?:\.(\d+))?(e.+)?$/.exec(String(value)) ?? [];
  if (exponent !== undefined) return formatValue(value, { unit });
  return formatValue(value, { unit, decimals: Math.max(decimals, digits.length) });
}

export function formatValue(
  value: number | { lat: number; long: number },
  { unit, decimals }: Shown = {},
): string {
  if (typeof value !== 'number')
    return `${formatNumber(value.lat, 5)}, ${formatNumber(value.long, 5)}`;
  const number = formatNumber(value, decimals);
  return unit ? `${number}\u00a0${unit}` : number;
}

const durationUnits = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** A duration in its two largest units: "6 min 40 s". */
export function formatDuration(ms: number): string {
  let leftMs = Math.max(0, Math.round(ms / 1_000) * 1_000);
  const parts: string[] = [];
  for (const [unit, unitMs] of durationUnits) {
    const number = Math.floor(leftMs / unitMs);
    leftMs -= number * unitMs;
    if (number > 0) parts.push(format(number, unit));
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length > 0 ? parts.join(' ') : format(0, 'second');
}

const format = (number: number, unit: string) =>
  new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'short' }).format(number);

type Over = { ms: number; stat: OverStat };
type Compared = { relative?: unknown; negate?: unknown; over?: unknown };

/** The statistic that a cause compares in place of values; null: it compares values. */
export const statisticOf = ({ over }: Compared): Over | null => (over as Over | undefined) ?? null;

/**
 * Whether a cause compares the values that are shown, or their average: not a difference, a sum, or the opposite. Only
 * then a value is above or below its limit.
 */
export const isPlain = (compared: Compared = {}): boolean =>
  compared.relative !== true &&
  compared.negate !== true &&
  (statisticOf(compared)?.stat ?? 'avg') === 'avg';

/** The condition of a cause: "above 8 °C"; empty if it accepts every value. */
export function sayCondition(
  thresholds: Record<string, unknown>,
  negate: boolean | undefined,
  sense: Shown | undefined,
): string {
  const shown = (value: unknown) =>
    typeof value === 'number' ? formatTyped(value, { unit: sense?.unit }) : '';
  const list = (value: unknown) => (Array.isArray(value) ? value.map(shown).join(', ') : '');
  const { isGt, isLt, isOneOf, isNotIn, isInsideGeo } = thresholds;
  const said = [
    isGt === undefined ? '' : t('event.above', { limit: shown(isGt) }),
    isLt === undefined ? '' : t('event.below', { limit: shown(isLt) }),
    isOneOf === undefined ? '' : t('event.oneOf', { limit: list(isOneOf) }),
    isNotIn === undefined ? '' : t('event.notIn', { limit: list(isNotIn) }),
    isInsideGeo === undefined ? '' : t('event.inside'),
  ];
  const condition = said.filter((each) => each !== '').join(', ');
  return negate && condition !== '' ? t('event.not', { condition }) : condition;
}
