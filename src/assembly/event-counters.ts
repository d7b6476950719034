import { Gauge } from 'prom-client';
import type { AccountThrottle, Uplink } from '../contract/uplink.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { EventQuotaOptions } from '../ingest/store/event-quota.ts';
import { startActivity, type Activity } from '../quotas/activity.ts';
import type { EventRate } from '../quotas/event-rate.ts';
import { createAccountThrottle, startStorageWatch, type StorageWatch } from '../quotas/throttle.ts';
import { countUsedUp, watchUsedUp } from '../quotas/used-up.ts';
import type { Shared } from './shared.ts';

/** What accounts use of their quotas, written from time to time. */
export async function startActivityOf(
  { db, limitsOf, clock, log, releases }: Shared,
  runUuid: string,
): Promise<Activity> {
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unwritten', err },
      'The usage of accounts could not be stored; it is tried again.',
    );
  const activity = await startActivity({ db, limitsOf, clock, runUuid, onError });
  releases.add('use of quotas', () => activity.close());
  return activity;
}

/** How many alarms of an account may be kept that open now: by both quotas. */
export function eventsLeftOf(quota: EventQuotaOptions): (accountId: number) => number {
  return (accountId) => Math.min(quota.eventsLeft(accountId), quota.eventsLeftNow(accountId));
}

/** What connectors ask whether an account's devices have to wait. */
export async function startHoldsOf(
  shared: Shared,
  rate: EventRate,
  ingest: Pick<Ingest, 'ingest'>,
): Promise<AccountThrottle> {
  const { db, config, log, releases, limitsOf, clock } = shared;
  const { retention } = config;
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unestimated', err },
      'The storage of accounts could not be estimated; it is tried again.',
    );
  const storage = await startStorageWatch({ db, limitsOf, retention, onError });
  releases.add('estimates of storage', () => storage.close());
  startUsedUpOf(shared, storage, onError);
  return createAccountThrottle({
    rate,
    storage,
    clock,
    tellFull: (device, topic) => {
      const uplink = storageFull(topic, clock());
      // If it cannot be stored, only this notice is lost.
      ingest.ingest(device, uplink, { isWithdrawn: false, stored() {}, failed() {} });
    },
  });
}

/** Says in log and metrics how many accounts cannot go on; which ones, `npm run account` and their own usage say. */
function startUsedUpOf(
  { db, config: { quotas }, log, releases, metrics }: Shared,
  storage: Pick<StorageWatch, 'countFull'>,
  onError: (error: unknown) => void,
): void {
  const quotasLog = log.child({ component: 'quotas' });
  const watch = watchUsedUp({
    async count() {
      const counts = await countUsedUp(db, quotas);
      const full = storage.countFull();
      return full > 0 ? counts.set('storedBytes', full) : counts;
    },
    onMore: (quota, accounts) =>
      quotasLog.warn(
        { event: 'quotas.used-up', quota, accounts },
        `The quota ${quota} is used up by ${accounts} ${accounts === 1 ? 'account' : 'accounts'}.`,
      ),
    onError,
  });
  new Gauge({
    name: 'quota_used_up_accounts',
    help: 'Accounts that have used up a quota, by quota; absent: none has.',
    labelNames: ['quota'],
    registers: [metrics.registry],
    collect() {
      this.reset();
      for (const [quota, accounts] of watch.counts()) this.set({ quota }, accounts);
    },
  });
  releases.add('quotas used up', () => watch.close());
}

// As of any rejection.
const maxTopicLength = 1_024;

function storageFull(topic: string, arrivedTs: number): Uplink {
  const message =
    "The account's quota storedBytes is used up: what its devices send has to wait, unacknowledged, " +
    'until there is room. This is said once a day.';
  const rejections = [{ reason: 'quota-exceeded' as const, message }];
  return {
    topic: topic.slice(0, maxTopicLength),
    excerpt: '',
    arrivedTs,
    content: { kind: 'none' },
    rejections,
  };
}
