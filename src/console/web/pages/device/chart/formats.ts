import { accountOf } from '../../../app/session.ts';
import { locale } from '../../../text/t.ts';

export type Formats = { time: (ts: number) => string; number: (value: number) => string };

/** For many rows at once: to make a format takes longer than to use it a hundred times. */
export function createFormats(decimals: number | undefined): Formats {
  const digits =
    decimals === undefined
      ? { maximumFractionDigits: 3 }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const number = new Intl.NumberFormat(locale(), digits);
  const time = new Intl.DateTimeFormat(locale(), {
    timeZone: accountOf()?.timeZone,
    dateStyle: 'medium',
    timeStyle: 'medium',
  });
  return { time: (ts) => time.format(ts), number: (value) => number.format(value) };
}
