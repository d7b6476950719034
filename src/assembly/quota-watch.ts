import { observeNearQuotas } from '../metrics/observe.ts';
import { enqueueQuotaNotice } from '../notifications/enqueue-direct.ts';
import { startQuotaWatch, type NearCounts } from '../quotas/near.ts';
import type { Shared } from './shared.ts';

/** Tells accounts, and the operator, which quotas near their end: once in an installation, whoever looks. */
export function startQuotaWatchOf(shared: Shared): void {
  const { config, db, clock, limitsOf, metrics, releases } = shared;
  const log = shared.log.child({ component: 'quotas' });
  const observe = observeNearQuotas(metrics.registry);
  let said = '';
  const watch = startQuotaWatch({
    db,
    quotas: config.quotas,
    retention: config.retention,
    clock,
    tell: (tx, accountId, near, nowMs) =>
      enqueueQuotaNotice(tx, accountId, near, { quotasOf: limitsOf, nowMs }),
    onLook(counts) {
      observe(counts);
      const accounts = nearAlone(counts);
      const saying = JSON.stringify(accounts);
      // Said when it changes, and not every hour.
      if (saying !== said && saying !== '{}')
        log.warn({ event: 'quotas.near', accounts }, 'Accounts use 80 % and more of a quota.');
      said = saying;
    },
    onError: (err) =>
      log.warn(
        { event: 'quotas.unlooked', err },
        'Which quotas near their end could not be looked up; it is tried again in an hour.',
      ),
  });
  releases.add('quotas that near their end', () => watch.close());
}

function nearAlone(counts: NearCounts): Record<string, number> {
  return Object.fromEntries(
    [...counts].flatMap(([quota, { near }]) => (near > 0 ? [[quota, near]] : [])),
  );
}
