import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { labelsOf } from '../http/router.ts';
import type { Account } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { MessageResponse } from '../http/schema.ts';
import { findJob, findUndo, type FoundJob, type JobOwner, listJobs, stopJob } from './jobs.ts';
import { Job, type JobEntry, JobList, JobParams } from './schema.ts';

const tag = 'Jobs';
/** Enough for those that are kept, and those in progress. */
const listed = 200;

type JobDeps = {
  db: Sql;
  /** How long after a job that closed alarms they can be opened again, ms. */
  reopenMs: number;
};

/** The progress and the results of actions on many devices or alarms. */
export function jobRoutes({ db, reopenMs }: JobDeps): Route[] {
  return [list(db, reopenMs), read(db, reopenMs), stop(db)];
}

/** A key that is confined to labels sees only its own jobs, because others concern other devices. */
const ownerOf = (account: Account): JobOwner => ({
  accountId: account.accountId,
  keyId: labelsOf(account) ? account.sessionId : null,
});

function list(db: Sql, reopenMs: number): Route {
  return defineRoute({
    name: 'listJobs',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/jobs',
    summary: 'List jobs',
    description:
      'Newest first: those in progress, and the last 100 of the last 30 days. `undo` says what takes a job back, and until when.',
    tag,
    auth: 'account',
    errors: [],
    response: JobList,
    handler: async ({ account, request }) => {
      const jobs = await listJobs(db, ownerOf(account), listed);
      const at = { reopenMs, nowTs: request.now() };
      return { jobs: jobs.map((job) => sayJob(job, account, at)), timestamp: at.nowTs };
    },
  });
}

function read(db: Sql, reopenMs: number): Route {
  return defineRoute({
    name: 'getJob',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/jobs/{jobId}',
    summary: 'Show the progress of a job',
    tag,
    auth: 'account',
    params: JobParams,
    errors: [404],
    response: Job,
    answerBytes: 655_360,
    handler: async ({ account, params, request }) => {
      const job = await findJob(db, ownerOf(account), params.jobId);
      if (!job) throw noSuchJob();
      const { failed, failedMore, keptDevices } = job;
      const {
        jobId: _id,
        failures: _number,
        ...said
      } = sayJob(job, account, {
        reopenMs,
        nowTs: request.now(),
      });
      return {
        ...said,
        ...sayFailed(failed),
        ...(failedMore > 0 ? { failedMore } : {}),
        ...(keptDevices.length > 0 ? { keptDevices } : {}),
        timestamp: request.now(),
      };
    },
  });
}

function stop(db: Sql): Route {
  return defineRoute({
    name: 'stopJob',
    scope: 'devices:write',
    method: 'delete',
    path: '/v2/jobs/{jobId}',
    summary: 'Stop a job',
    description:
      'Devices and alarms already processed stay as they are. A job that has ended does not change.',
    tag,
    auth: 'account',
    params: JobParams,
    errors: [404],
    response: MessageResponse,
    handler: async ({ account, params, request }) => {
      const { receivedTs } = request;
      if (!(await stopJob(db, ownerOf(account), params.jobId, receivedTs))) throw noSuchJob();
      return { timestamp: request.now(), message: 'The job is stopped.' };
    },
  });
}

function sayFailed(failed: FoundJob['failed']): Pick<Job, 'failed' | 'failedAlarms'> {
  const failedAlarms = failed.flatMap((each) => ('alarmId' in each ? [each] : []));
  return {
    failed: failed.flatMap((each) => ('alarmId' in each ? [] : [each])),
    ...(failedAlarms.length === 0 ? {} : { failedAlarms }),
  };
}

/** A key learns nothing of other keys. */
function sayJob(
  job: Parameters<typeof findUndo>[0],
  { key }: Account,
  at: Parameters<typeof findUndo>[1],
): JobEntry {
  const { jobId, state, done, of, failures, kept, startedTs, by } = job;
  const { action, labels, untilTs, pId, pIds, purposes } = job.action;
  return {
    jobId,
    action,
    labels: labels ?? undefined,
    untilTs: untilTs ?? undefined,
    pId: pId ?? undefined,
    pIds: pIds ?? undefined,
    purposes: purposes ?? undefined,
    state,
    done,
    of,
    failures,
    kept,
    startedTs,
    endedTs: job.endedTs ?? undefined,
    by,
    keyName: key ? undefined : (job.keyName ?? undefined),
    undo: findUndo(job, at) ?? undefined,
    undoneBy: job.undoneBy ?? undefined,
  };
}

const noSuchJob = () => new DomainError('not-found', 'There is no such job.');
