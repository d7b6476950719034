import type { Span } from './span.ts';
import type { Limit } from './thresholds.ts';

/** A limit that is farther away than the values are apart would press them flat. */
const farthest = 2;

type View = { limits: readonly Limit[]; alarms: readonly Span[]; span: Span };

/**
 * From where to where the values and the limits that are near reach. While an alarm was open, the nearest limit
 * that opens one is near: it is what the reader looks for.
 */
export function inView(min: number, max: number, { limits, alarms, span }: View): [number, number] {
  const reach = Math.max(max - min, Math.abs(max) / 10) * farthest;
  const near = limits
    .map(({ value }) => value)
    .filter((value) => value > min - reach && value < max + reach);
  if (alarms.some(({ start, end }) => start < span.end && end > span.start)) {
    const distance = ({ value }: Limit) => Math.max(min - value, value - max);
    const [nearest] = limits
      .filter(({ isAlarm }) => isAlarm)
      .toSorted((one, other) => distance(one) - distance(other));
    if (nearest) near.push(nearest.value);
  }
  return [Math.min(min, ...near), Math.max(max, ...near)];
}
