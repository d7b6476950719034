import { DomainError } from '../errors.ts';
import type { Unit } from './entry.ts';

/** Whether its message will be sent again, or is nobody's any more. */
export function isWithdrawn({ entry }: Unit): boolean {
  return entry.delivery.isWithdrawn;
}

/** Tells that withdrawn messages are not stored: `unavailable`. */
export function failWithdrawn(units: Unit[]): void {
  const error = new DomainError('unavailable', 'The connection closed before this was stored.');
  for (const { entry } of units) entry.fail(error);
}
