import { call } from './request.ts';
import type { DeviceAction, Job, JobList, LabelList } from './types.ts';

export type JobEntry = JobList['jobs'][number];

/** Begins to do something with many devices; the service goes on with it whatever becomes of this page. */
export const startAction = async (body: DeviceAction): Promise<string> =>
  (await call<{ jobId: string }>('POST', '/v2/devices/actions', { body })).body.jobId;

export const listJobs = async (signal?: AbortSignal): Promise<JobEntry[]> =>
  (await call<JobList>('GET', '/v2/jobs', { signal })).body.jobs;

export const getJob = async (jobId: string, signal?: AbortSignal): Promise<Job> =>
  (await call<Job>('GET', `/v2/jobs/${jobId}`, { signal })).body;

export const stopJob = (jobId: string) => call('DELETE', `/v2/jobs/${jobId}`);

export const listLabels = async (signal?: AbortSignal): Promise<LabelList['labels']> =>
  (await call<LabelList>('GET', '/v2/devices/labels', { signal })).body.labels;
