import { compactActivity } from '../quotas/activity-queries.ts';
import { forgetRefusedLogins } from '../devices/refused-login-queries.ts';
import { createDeviceRemoval, detachDevices } from '../devices/remove-devices.ts';
import type { FailedJob } from '../history/failed-jobs.ts';
import { createClearing } from '../history/clear-removed.ts';
import { applyRetention } from '../history/retention.ts';
import { startUpkeep } from '../history/upkeep.ts';
import { forgetKeys } from '../idempotency/forget-keys.ts';
import { forgetGaps } from '../listening/queries.ts';
import { forgetOldDisplays } from '../profiles/kept-displays.ts';
import { removeUnusedProfiles } from '../profiles/remove-unused.ts';
import { startEvery } from '../lib/every.ts';
import { forgetTickets } from '../streams/ticket-queries.ts';
import { forgetOldAlarms } from './alarms.ts';
import { forgetOldEntries } from './audit.ts';
import { forgetOldJobs } from './jobs.ts';
import type { Shared } from './shared.ts';

const clearEveryMs = 30_000;

/** Keeps the history as long as it is asked for, and clears what removed devices and accounts left. */
export async function startHistoryCare(shared: Shared) {
  const { config, log, db, bus, clock, monotonicClock, releases } = shared;
  await applyRetention(db, config.retention);
  const historyLog = log.child({ component: 'history' });
  const onError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.upkeep-failed', err },
      'The upkeep of the history failed; it is tried again in an hour.',
    );
  const onFailedJobs = (jobs: FailedJob[]) =>
    historyLog.warn(
      { event: 'history.jobs-failed', jobs },
      'Jobs of TimescaleDB on the history failed; it tries them again.',
    );
  const { retention } = config;
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
  const chores = [
    (signal: AbortSignal) => removeUnusedProfiles(db, signal),
    () => compactActivity(db, retention),
    () => forgetGaps(db),
    (signal: AbortSignal) => forgetKeys(db, clock(), signal),
    () => forgetTickets(db),
    () => forgetRefusedLogins(db, clock()),
    (signal: AbortSignal) => forgetOldDisplays(db, signal),
    forgetOldEntries(shared),
    forgetOldJobs(shared),
    forgetOldAlarms(shared),
  ];
  releases.add(
    'upkeep of the history',
    startUpkeep({ db, retention, clock, onError, onFailedJobs, chores }),
  );
  return { removal, startClearing: clearing.start };
}
