import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { labelsOf } from '../http/router.ts';
import type { Account } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { MessageResponse } from '../http/schema.ts';
import {
  findJob,
  type FoundJob,
  Job,
  type JobAction,
  JobList,
  type JobOwner,
  JobParams,
  listJobs,
  stopJob,
} from './jobs.ts';

const tag = 'Jobs';
/** Enough for those that are kept, and those in progress. */
const listed = 200;

/** The progress and the results of actions on many devices or alarms. */
export function jobRoutes({ db }: { db: Sql }): Route[] {
  return [list(db), read(db), stop(db)];
}

/** A key that is confined to labels sees only its own jobs, because others concern other devices. */
const ownerOf = (account: Account): JobOwner => ({
  accountId: account.accountId,
  keyId: labelsOf(account) ? account.sessionId : null,
});

function list(db: Sql): Route {
  return defineRoute({
    name: 'listJobs',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/jobs',
    summary: 'List jobs',
    description: 'Newest first: those in progress, and the last 100 of the last 30 days.',
    tag,
    auth: 'account',
    errors: [],
    response: JobList,
    handler: async ({ account, request }) => {
      const jobs = await listJobs(db, ownerOf(account), listed);
      const told = jobs.map(({ action, endedTs, ...job }) => ({
        ...job,
        ...sayAction(action),
        ...(endedTs === null ? {} : { endedTs }),
      }));
      return { jobs: told, timestamp: request.now() };
    },
  });
}

function read(db: Sql): Route {
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
    answerBytes: 262_144,
    handler: async ({ account, params, request }) => {
      const job = await findJob(db, ownerOf(account), params.jobId);
      if (!job) throw noSuchJob();
      const { jobId: _id, action, endedTs, failed, failedMore, ...rest } = job;
      return {
        ...rest,
        ...sayAction(action),
        ...sayFailed(failed),
        ...(failedMore > 0 ? { failedMore } : {}),
        ...(endedTs === null ? {} : { endedTs }),
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

const sayAction = ({ action, labels, untilTs, pId, pIds, purposes }: JobAction) => ({
  action,
  labels: labels ?? undefined,
  untilTs: untilTs ?? undefined,
  pId: pId ?? undefined,
  pIds: pIds ?? undefined,
  purposes: purposes ?? undefined,
});

const noSuchJob = () => new DomainError('not-found', 'There is no such job.');
