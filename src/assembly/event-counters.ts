import type { AccountThrottle, Uplink } from '../contract/uplink.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { EventQuotaOptions } from '../ingest/event-quota.ts';
import { startActivity, type Activity } from '../quotas/activity.ts';
import type { EventRate } from '../quotas/event-rate.ts';
import { createAccountThrottle, startStorageWatch } from '../quotas/throttle.ts';
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
  { db, config, log, releases, limitsOf, clock }: Shared,
  rate: EventRate,
  ingest: Pick<Ingest, 'ingest'>,
): Promise<AccountThrottle> {
  const { retention } = config;
  const quotasLog = log.child({ component: 'quotas' });
  const onError = (err: unknown) =>
    quotasLog.warn(
      { event: 'quotas.unestimated', err },
      'The storage of accounts could not be estimated; it is tried again.',
    );
  const storage = await startStorageWatch({ db, limitsOf, retention, onError });
  releases.add('estimates of storage', () => storage.close());
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
