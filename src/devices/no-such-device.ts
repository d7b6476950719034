import { DomainError } from '../errors.ts';

/** The same for a device that does not exist and for one that belongs to somebody else. */
export function noSuchDevice(): DomainError {
  return new DomainError('not-found', 'There is no such device.');
}
