import { DomainError } from '../errors.ts';
import type { QuotaName } from './settings.ts';

export type Exceeded = { quota: QuotaName; limit: number; used: number };

/** What is refused because the account would have more than its quota of something. */
export function quotaExceeded({ quota, limit, used }: Exceeded): DomainError {
  const message = `This goes beyond the quota ${quota}: ${used} of ${limit} are in use.`;
  return new DomainError('quota-exceeded', message, { exceeded: { quota, limit, used } });
}
