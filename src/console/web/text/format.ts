import { accountOf } from '../app/session.ts';
import { clock } from '../app/now.ts';
import { locale, t } from './t.ts';

const zone = () => accountOf()?.timeZone;

/** A time as people say it, in the account's time zone: of today without the date. */
export function formatTime(ts: number): string {
  const options = { timeZone: zone(), hour: '2-digit', minute: '2-digit' } as const;
  const time = new Intl.DateTimeFormat(locale(), options);
  return isToday(ts) ? time.format(ts) : `${formatDay(ts)}, ${time.format(ts)}`;
}

/** All of a time, to the second. */
export function formatFullTime(ts: number): string {
  const options = { timeZone: zone(), dateStyle: 'medium', timeStyle: 'medium' } as const;
  return new Intl.DateTimeFormat(locale(), options).format(ts);
}

const dayOf = (ts: number) =>
  new Intl.DateTimeFormat('sv', { timeZone: zone(), dateStyle: 'short' }).format(ts);

const isToday = (ts: number) => dayOf(ts) === dayOf(clock.value);

function formatDay(ts: number): string {
  const isThisYear = dayOf(ts).slice(0, 4) === dayOf(clock.value).slice(0, 4);
  const year = isThisYear ? {} : ({ year: 'numeric' } as const);
  const options = { timeZone: zone(), day: 'numeric', month: 'short', ...year } as const;
  return new Intl.DateTimeFormat(locale(), options).format(ts);
}

const units = [
  ['second', 1_000, 60],
  ['minute', 60_000, 60],
  ['hour', 3_600_000, 24],
  ['day', 86_400_000, 60],
] as const;

/** How long ago; what is older than two months by its date. */
export function formatAgo(ts: number | null): string {
  if (ts === null) return t('common.never');
  const ageMs = Math.max(0, clock.value - ts);
  for (const [unit, ms, limit] of units) {
    const number = Math.floor(ageMs / ms);
    if (number < limit) return ago(unit === 'second' ? 0 : -number, unit);
  }
  return formatDay(ts);
}

const ago = (number: number, unit: Intl.RelativeTimeFormatUnit) =>
  new Intl.RelativeTimeFormat(locale(), { numeric: 'auto', style: 'short' }).format(number, unit);

type Shown = { unit?: string | undefined; decimals?: number | undefined };

/** A number as its sense shows it, without the unit. */
export function formatNumber(value: number, decimals?: number): string {
  const digits =
    decimals === undefined
      ? { maximumFractionDigits: 3 }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return new Intl.NumberFormat(locale(), digits).format(value);
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
