import { compactActivity } from '../quotas/activity-queries.ts';
import { createDeviceRemoval } from '../devices/remove-devices.ts';
import type { FailedJob } from '../history/failed-jobs.ts';
import { purgeDevices } from '../history/purge.ts';
import { applyRetention } from '../history/retention.ts';
import { startUpkeep } from '../history/upkeep.ts';
import { forgetGaps } from '../listening/queries.ts';
import { removeUnusedProfiles } from '../profiles/remove-unused.ts';
import { forgetTickets } from '../streams/ticket-queries.ts';
import { forgetOldAlarms } from './alarms.ts';
import { forgetOldEntries } from './audit.ts';
import type { Shared } from './shared.ts';

/** Keeps the history as long as it is asked for, and clears what removed devices left. */
export async function startHistoryCare(shared: Shared) {
  const { config, log, db, bus, clock, releases } = shared;
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
  const onPurgeError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.purge-failed', err },
      'The history of a removed device could not be deleted; it is tried again within the hour.',
    );
  const removal = createDeviceRemoval({ db, bus, purge: purgeDevices, onPurgeError });
  const chores = [
    (signal: AbortSignal) => removal.resume(signal).catch(onPurgeError),
    (signal: AbortSignal) => removeUnusedProfiles(db, signal),
    () => compactActivity(db, retention),
    () => forgetGaps(db),
    () => forgetTickets(db),
    forgetOldEntries(shared),
    forgetOldAlarms(shared),
  ];
  releases.add(
    'upkeep of the history',
    startUpkeep({ db, retention, clock, onError, onFailedJobs, chores }),
  );
  return removal;
}
