import { Gauge } from 'prom-client';
import { forgetTokensOfEnded } from '../accounts/push-tokens.ts';
import { forgetRefusedLogins } from '../devices/refused-logins.ts';
import { createDeviceRemoval, detachDevices } from '../devices/remove.ts';
import { createClearing } from '../history/clear-removed.ts';
import type { FailedJob } from '../history/failed-jobs.ts';
import { type Chore, startUpkeep } from '../history/upkeep.ts';
import { forgetKeys } from '../idempotency/forget-keys.ts';
import { startEvery } from '../lib/every.ts';
import { forgetGaps } from '../listening/queries.ts';
import { forgetOldDisplays } from '../profiles/kept-displays.ts';
import { removeUnusedProfiles } from '../profiles/remove-unused.ts';
import { compactActivity } from '../quotas/activity-queries.ts';
import { forgetTickets } from '../streams/ticket-queries.ts';
import { forgetOldEntries } from './audit.ts';
import { forgetOldJobs } from './jobs.ts';
import { forgetOldAlarms } from './people.ts';
import type { Shared } from './shared.ts';

const clearEveryMs = 30_000;

/** Keeps the history as long as it is asked for, and clears what removed devices and accounts left. */
export async function startHistoryCare(
  shared: Shared,
  isLiveSession: (sessionId: string) => Promise<boolean>,
) {
  const { log, db, bus, believed, monotonicClock, releases } = shared;
  const uncompressed = new Gauge({
    name: 'history_uncompressed_chunks',
    help: 'Chunks that TimescaleDB should have compressed more than a day ago, by table; absent: none.',
    labelNames: ['relation'],
    registers: [shared.metrics.registry],
  });
  const historyLog = log.child({ component: 'history' });
  const onError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.upkeep-failed', err },
      'The upkeep of the history failed; it is tried again in an hour.',
    );
  const onFailedJobs = (jobs: FailedJob[]) => {
    uncompressed.reset();
    for (const { relation, chunks } of jobs) uncompressed.set({ relation }, chunks);
    if (jobs.length > 0)
      historyLog.warn(
        { event: 'history.jobs-failed', jobs },
        'Parts of the history should have been compressed for more than a day, and are not.',
      );
  };
  const onClearingError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.purge-failed', err },
      'What belonged to a removed device or account could not be deleted; it is tried again within a minute.',
    );
  const clearing = createClearing({
    db,
    nowMs: monotonicClock,
    detach: (accountId, limit) => detachDevices(db, bus, accountId, limit),
    onError: onClearingError,
  });
  const removal = createDeviceRemoval({ db, bus, startClearing: clearing.start });
  // What another process did not come to, because it was killed.
  const stopClearing = startEvery(clearEveryMs, (signal) =>
    clearing.resume(signal).catch(onClearingError),
  );
  releases.add('clearing of removed devices', async () => {
    await stopClearing();
    await clearing.close();
  });
  const chores: Chore[] = [
    (nowTs, { kept }) => compactActivity(db, kept, nowTs),
    (nowTs) => forgetGaps(db, nowTs),
    (nowTs, { signal }) => forgetKeys(db, nowTs, signal),
    (nowTs) => forgetTickets(db, nowTs),
    (_nowTs, { signal }) => forgetTokensOfEnded(db, isLiveSession, signal),
    (nowTs) => forgetRefusedLogins(db, nowTs),
    (nowTs, { signal }) => forgetOldDisplays(db, nowTs, signal),
    forgetOldEntries(shared),
    forgetOldJobs(shared),
    forgetOldAlarms(shared),
  ];
  const onDoubt = () =>
    historyLog.warn(
      { event: 'history.upkeep-waits' },
      'Nothing that is past its time is deleted: the clock is in doubt. `npm run clock` says more.',
    );
  releases.add(
    'upkeep of the history',
    startUpkeep({
      db,
      settleRetention: shared.kept.settle,
      believedTs: believed.believedTs,
      onError,
      onFailedJobs,
      onDoubt,
      chores,
      timelessChores: [(signal) => removeUnusedProfiles(db, signal)],
    }),
  );
  return { removal, startClearing: clearing.start };
}
