import { DomainError } from '../../errors.ts';
import type { Unit } from '../rules/message.ts';

/** Whether its message will be sent again, or is nobody's any more. */
export function isWithdrawn({ message }: Unit): boolean {
  return message.delivery.isWithdrawn;
}

/** Tells that withdrawn messages are not stored: `unavailable`. */
export function failWithdrawn(units: Unit[]): void {
  const error = new DomainError('unavailable', 'The connection closed before this was stored.');
  for (const { message } of units) message.fail(error);
}
