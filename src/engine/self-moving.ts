import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Place } from '../contract/place.ts';

/** Whether any measurement meets each of its causes, at once. */
export function isMetByAny({ causes }: LiveEvent): boolean {
  const isMet = ({ reads, negate, time }: CompiledCause) =>
    reads === 'anything' && !negate && time === null;
  return causes.length > 0 && causes.every(isMet);
}

/** Whether it waits until nothing is measured, and for nothing else. */
function isMetBySilence({ causes }: LiveEvent): boolean {
  return causes.length > 0 && causes.every(({ time }) => typeof time?.noneForMs === 'number');
}

/** What moves the device on without a value that is compared. */
export type SelfMove = { on: 'any' | 'silence'; to: Place };

/** Where an event moves the device to by any measurement, or by silence; null for all others. */
export function selfMoveOf(event: LiveEvent): SelfMove | null {
  if (!event.target) return null;
  const to = event.target.place;
  if (isMetByAny(event)) return { on: 'any', to };
  return isMetBySilence(event) ? { on: 'silence', to } : null;
}
