import { observeNearQuotas } from '../metrics/observe.ts';
import { enqueueQuotaNotice } from '../notifications/enqueue-direct.ts';
import { moreThan, startQuotaWatch, type NearCounts } from '../quotas/near.ts';
import type { Shared } from './shared.ts';

const said = [
  { level: 'near', event: 'quotas.near', text: 'Accounts use 80 % and more of a quota.' },
  { level: 'used-up', event: 'quotas.used-up', text: 'Accounts have used up a quota.' },
] as const;

/** Tells accounts, and the operator, which quotas near their end: once in an installation, whoever looks. */
export function startQuotaWatchOf(shared: Shared): void {
  const { config, db, clock, limitsOf, metrics, releases } = shared;
  const log = shared.log.child({ component: 'quotas' });
  const observe = observeNearQuotas(metrics.registry);
  let known: NearCounts = new Map();
  const watch = startQuotaWatch({
    db,
    quotas: config.quotas,
    retention: config.retention,
    clock,
    tell: (tx, accountId, near, nowMs) =>
      enqueueQuotaNotice(tx, accountId, near, { quotasOf: limitsOf, nowMs }),
    onLook(counts) {
      observe(counts);
      for (const { level, event, text } of said) {
        const accounts = moreThan(known, counts, level);
        if (Object.keys(accounts).length > 0) log.warn({ event, accounts }, text);
      }
      known = counts;
    },
    onError: (err) =>
      log.warn(
        { event: 'quotas.unlooked', err },
        'Which quotas near their end could not be looked up; it is tried again in a minute.',
      ),
  });
  releases.add('quotas that near their end', () => watch.close());
}
