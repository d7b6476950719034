import { LRUCache } from 'lru-cache';

/** To make one takes longer than to write a thousand times with it: as many are kept as accounts may mix in a day. */
const mostKept = 500;

/** Gives the format of that name, made once; of too many the least recently used is forgotten. */
function keeping<F extends object>(): (name: string, make: () => F) => F {
  const kept = new LRUCache<string, F>({ max: mostKept });
  return (name, make) => {
    const format = kept.get(name) ?? make();
    kept.set(name, format);
    return format;
  };
}

const dates = keeping<Intl.DateTimeFormat>();
const numbers = keeping<Intl.NumberFormat>();

/** Of a locale, and options that are few all together. */
export function dateFormat(
  locale: string,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const name = `${locale} ${JSON.stringify(options)}`;
  return dates(name, () => new Intl.DateTimeFormat(locale, options));
}

/** Likewise. */
export function numberFormat(locale: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = `${locale} ${JSON.stringify(options)}`;
  return numbers(name, () => new Intl.NumberFormat(locale, options));
}
