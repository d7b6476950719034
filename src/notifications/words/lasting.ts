import { numberFormat } from './formats.ts';
import type { Words } from './words.ts';

const units = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
  { unit: 'second', ms: 1_000 },
] as const;

/** A duration in words, in its two largest units at most: "1 hour 30 minutes", "10 Minuten". */
export function describeLasting(ms: number, { locale }: Words): string {
  const first = units.findIndex((unit) => ms >= unit.ms);
  if (first < 0) return write(0, 'second', locale);
  let rest = ms;
  const parts = units.slice(first, first + 2).map(({ unit, ms: unitMs }) => {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    return count === 0 ? '' : write(count, unit, locale);
  });
  return parts.filter((part) => part !== '').join(' ');
}

function write(count: number, unit: string, locale: string): string {
  const style = { style: 'unit', unit, unitDisplay: 'long' } as const;
  return numberFormat(locale, style).format(count);
}
