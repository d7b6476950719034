import { DomainError } from '../errors.ts';

/** Throws `not-found` with the devices that were named and are not among those found. */
export function refuseUnknown(uuids: string[], found: { uuid: string }[]): void {
  const known = new Set(found.map(({ uuid }) => uuid));
  const unknown = uuids.filter((uuid) => !known.has(uuid));
  if (unknown.length === 0) return;
  const names = unknown.slice(0, 3).join(', ');
  const more = unknown.length > 3 ? ` and ${unknown.length - 3} more` : '';
  throw new DomainError('not-found', `There is no such device: ${names}${more}.`);
}
