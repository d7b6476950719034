import type { DoPiece, PieceDone } from '../jobs/runner.ts';
import { startJobRunner } from '../jobs/runner.ts';
import { forgetJobs, listJobDevices } from '../jobs/jobs.ts';
import { createStartJob, keptSince } from '../jobs/start-job.ts';
import type { ActDeps } from '../alarms/act-on.ts';
import { muteWithin } from '../alarms/mute.ts';
import type { Sql } from '../db/sql.ts';
import type { StoredAction } from '../devices/action-schema.ts';
import { listReachable, relabelDevices } from '../devices/label-devices.ts';
import type { DeviceRemoval } from '../devices/remove.ts';
import type { JobPiece } from '../jobs/turn-queries.ts';
import type { Shared } from './shared.ts';

type JobDeps = {
  removal: Pick<DeviceRemoval, 'removeWithin' | 'finishRemoval'>;
  acting: ActDeps;
  /** Labels of devices of the account changed. */
  onLabelled: (accountId: number, nowTs: number) => Promise<void>;
};

/** Does what accounts begin with many devices. */
export function startJobs(shared: Shared, deps: JobDeps) {
  const { db, log, limitsOf, monotonicClock, clock, releases } = shared;
  const { believedTs } = shared.believed;
  const jobsLog = log.child({ component: 'jobs' });
  const runner = startJobRunner({
    db,
    doPiece: createDoPiece(deps, clock),
    nowMs: monotonicClock,
    onError: (err) =>
      jobsLog.warn(
        { event: 'jobs.piece-failed', err },
        'A job failed for some devices; it is tried again.',
      ),
  });
  releases.add('jobs', () => runner.close());
  return {
    startJob: createStartJob({ db, limitsOf, believedTs, onStarted: runner.wake }),
    listJobDevices,
  };
}

/** A chore of the upkeep. */
export const forgetOldJobs =
  ({ db }: Pick<Shared, 'db'>) =>
  (nowTs: number): Promise<void> =>
    forgetJobs(db, { accountId: null, keep: 0, ...keptSince(nowTs) });

function createDoPiece({ removal, acting, onLabelled }: JobDeps, clock: () => number): DoPiece {
  return async (tx, piece) => {
    const { accountId, uuids, labels } = piece;
    const { action, ...of } = piece.action as StoredAction;
    const by = { actor: piece.actor, ts: clock() };
    switch (action) {
      case 'label':
      case 'unlabel':
        return {
          ...(await relabel(tx, piece, action, of.labels ?? [])),
          after: () => onLabelled(accountId, clock()),
        };
      case 'remove': {
        const removed = await removal.removeWithin(tx, accountId, { uuids, labels, by });
        const after = async () => {
          await removal.finishRemoval(removed);
          acting.bus.publish('fleet', { accountId });
        };
        return { failed: missing(uuids, removed), after };
      }
      case 'mute':
      case 'unmute': {
        const devices = await listReachable(tx, accountId, { uuids, labels });
        const until =
          action === 'mute' ? { untilTs: of.untilTs ?? 0, reason: of.reason ?? null } : null;
        await muteWithin(tx, acting.telling, { accountId, by, devices }, until);
        const deviceIds = devices.map(({ deviceId }) => deviceId);
        const after = () => acting.bus.publish('events', { accountIds: [accountId], deviceIds });
        return { failed: missing(uuids, devices), after };
      }
    }
  };
}

async function relabel(
  tx: Sql,
  { accountId, uuids }: JobPiece,
  action: 'label' | 'unlabel',
  labels: string[],
): Promise<PieceDone> {
  const [add, remove] = action === 'label' ? [labels, []] : [[], labels];
  const { missing: gone, full } = await relabelDevices(tx, { accountId, uuids, add, remove });
  return { failed: [...fail(gone, 'no-such-device'), ...fail(full, 'too-many-labels')] };
}

const fail = (uuids: readonly string[], reason: string) =>
  uuids.map((deviceAuthUuid) => ({ deviceAuthUuid, reason }));

function missing(uuids: readonly string[], found: readonly { uuid: string }[]) {
  const there = new Set(found.map(({ uuid }) => uuid));
  return fail(
    uuids.filter((uuid) => !there.has(uuid)),
    'no-such-device',
  );
}
