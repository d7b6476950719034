import { locale } from './t.ts';

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** A length of time in its two largest units: "6 min 40 s". */
export function formatDuration(ms: number): string {
  let leftMs = Math.max(0, Math.round(ms / 1_000) * 1_000);
  const parts: string[] = [];
  for (const [unit, unitMs] of units) {
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
