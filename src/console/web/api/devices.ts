import { now } from '../app/now.ts';
import type { StreamMessage } from '../app/stream.ts';
import { type Answer, call } from './request.ts';
import type {
  ActionPreview,
  Configuration,
  DescribedDevice,
  Description,
  DeviceAction,
  DeviceList,
  Job,
  JobList,
  LabelList,
  ListedProfile,
  NotificationOutcome,
  OneDevice,
  ProfileSpan,
  Purpose,
  RefusedLoginList,
  Registration,
  RejectionList,
  RemovedLoginList,
  Sense,
} from './types.ts';

export type ListedDevice = DeviceList['devices'][number];
export type Rejection = RejectionList['rejections'][number];
export type FleetFilter = {
  search: string;
  presence: string;
  /** In URLs from before `presence` existed. */
  online: string;
  profile: string;
  alarm: string;
  refused: string;
  muted: string;
  label: string;
  /** puId:stId */
  state: string;
  /** sId:gt:number or sId:lt:number */
  value: string;
  beyond: string;
  swVersion: string;
  sort: string;
  cursor: string;
};

/** The profiles that were in force on a device: the newest 100. */
export const listProfilesOf = async (
  uuid: string,
  signal?: AbortSignal,
  { start, end }: { start?: number; end?: number } = {},
): Promise<ProfileSpan[]> => {
  const path = `/v2/devices/${uuid}/profiles`;
  const { body } = await call<{ profiles: ProfileSpan[] }>('GET', path, {
    query: { start, end },
    signal,
  });
  return body.profiles;
};

/** Devices on a page. */
export const pageSize = 50;

export const listDevices = (
  filter: Partial<FleetFilter>,
  signal?: AbortSignal,
): Promise<Answer<DeviceList>> =>
  call('GET', '/v2/devices', { query: { ...filter, limit: pageSize, counts: 'true' }, signal });

const mostInPage = 1_000;
const mostPages = 5;

/** The first 5,000 devices of the account that match, in the order in which they were added. */
export async function listFirst(
  filter: Partial<FleetFilter>,
  signal?: AbortSignal,
): Promise<ListedDevice[]> {
  const found: ListedDevice[] = [];
  let cursor: string | null = '';
  for (let page = 0; page < mostPages && cursor !== null; page += 1) {
    const query = { ...filter, limit: mostInPage, cursor };
    const answer: Answer<DeviceList> = await call('GET', '/v2/devices', { query, signal });
    found.push(...answer.body.devices);
    cursor = answer.next;
  }
  return found;
}

/** How many devices a profile runs on, and how many it does not; which wait for one, are away, or cannot log in. */
export type Watched = Record<'watched' | 'unwatched' | 'pending' | 'away' | 'refused', number>;

export async function countWatched(signal?: AbortSignal): Promise<Watched> {
  const ask = async (profile: string) => {
    const query = { profile, limit: 1, counts: 'true' };
    return (await call<DeviceList>('GET', '/v2/devices', { query, signal })).body.counts;
  };
  const [running, none] = await Promise.all([ask('current'), ask('none')]);
  return {
    watched: running?.matching ?? 0,
    unwatched: none?.matching ?? 0,
    pending: running?.pendingProfile ?? 0,
    away: running?.offline ?? 0,
    refused: running?.refused ?? 0,
  };
}

export type Protocol = 'mqtt' | 'http';

export const registerDevice = async (
  body: Configuration & { protocol?: Protocol },
): Promise<Registration> => (await call<Registration>('POST', '/v2/devices', { body })).body;

export const getConfiguration = async (uuid: string, signal?: AbortSignal) =>
  (await call<DescribedDevice>('GET', `/v2/devices/${uuid}/configuration`, { signal })).body;

type Evaluation = { engine: 'service' | 'device' | 'none'; evaluation: Description | null };

export const explainEvaluation = async (uuid: string, signal?: AbortSignal) =>
  (await call<Evaluation>('GET', `/v2/devices/${uuid}/evaluation`, { signal })).body;

/** How many rejections are listed; there may be more. */
export const mostRejections = 50;

export const listRejections = async (uuid: string, signal?: AbortSignal) => {
  const query = { limit: mostRejections };
  const path = `/v2/devices/${uuid}/rejections`;
  return (await call<RejectionList>('GET', path, { query, signal })).body.rejections;
};

export const muteDevice = (uuid: string, body: { untilTs: number; reason?: string }) =>
  call('PUT', `/v2/devices/${uuid}/mute`, { body });

export const unmuteDevice = (uuid: string) => call('DELETE', `/v2/devices/${uuid}/mute`);

export type RefusedLogin = RefusedLoginList['refusedLogins'][number];
/** What a device needs to connect. */
export type Access = Pick<
  Registration,
  'protocol' | 'host' | 'port' | 'deviceAuthUuid' | 'deviceAuthToken'
>;

export const getDevice = async (uuid: string, signal?: AbortSignal): Promise<OneDevice> =>
  (await call<OneDevice>('GET', `/v2/devices/${uuid}`, { signal })).body;

export const listRefusedLogins = async (uuid: string, signal?: AbortSignal) =>
  (await call<RefusedLoginList>('GET', `/v2/devices/${uuid}/refused-logins`, { signal })).body
    .refusedLogins;

export type RemovedLogin = RemovedLoginList['refusedLogins'][number];

/** Those of removed devices, newest first. */
export const listRemovedLogins = async (signal?: AbortSignal): Promise<RemovedLogin[]> => {
  const path = '/v2/devices/removed/refused-logins';
  const query = { limit: 100 };
  return (await call<RemovedLoginList>('GET', path, { query, signal })).body.refusedLogins;
};

export const listNotifications = (
  uuid: string,
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ notifications: NotificationOutcome[] }>> =>
  call('GET', `/v2/devices/${uuid}/notifications`, { query: { limit: 20, cursor }, signal });

export const rotateToken = async (uuid: string, body: { revoke: boolean }): Promise<string> =>
  (await call<{ deviceAuthToken: string }>('POST', `/v2/devices/${uuid}/token`, { body })).body
    .deviceAuthToken;

export const saveConfiguration = (uuid: string, body: Configuration) =>
  call('PUT', `/v2/devices/${uuid}/configuration`, { body });

export const saveLabels = (uuid: string, labels: string[]) =>
  call('PUT', `/v2/devices/${uuid}/labels`, { body: { labels } });

export const removeDevice = (uuid: string) => call('DELETE', `/v2/devices/${uuid}`);

type Live = Pick<ListedDevice, 'connected' | 'presence' | 'lastSeenTs' | 'refusedTs'>;

const notRefused = { refusedTs: undefined };

/** Values update when their device was last seen; not every one of them. */
const seenEveryMs = 10_000;

/** Updates what is known of a device from the stream; returns the same object if nothing changes. */
export function updateDevice<D extends ListedDevice>(device: D, message: StreamMessage): D {
  const change = changeOf(device, message);
  return change ? { ...device, ...change } : device;
}

function changeOf(device: ListedDevice, message: StreamMessage): Partial<Live> | null {
  if (message.kind === 'presence') {
    const told = message.devices.findLast(({ deviceAuthUuid }) => deviceAuthUuid === device.uuid);
    if (!told) return null;
    const { presence, lastSeenTs } = told;
    const isThere = presence === 'online';
    // A device that is there is no longer refused: the list says so a little later.
    return { presence, connected: isThere, lastSeenTs, ...(isThere ? notRefused : {}) };
  }
  const isRecent = now() - (device.lastSeenTs ?? 0) < seenEveryMs;
  if (message.kind !== 'values' || (isRecent && device.refusedTs === undefined)) return null;
  const hasSent = message.values.some(({ deviceAuthUuid }) => deviceAuthUuid === device.uuid);
  return hasSent ? { lastSeenTs: now(), ...notRefused } : null;
}

export type JobEntry = JobList['jobs'][number];

/** Starts an action on many devices; the service finishes it even if this page is closed. */
export const startAction = async (body: DeviceAction): Promise<string> =>
  (await call<{ jobId: string }>('POST', '/v2/devices/actions', { body })).body.jobId;

/** What a change of limits or profiles would do; it does nothing. */
export const previewAction = async (
  body: DeviceAction,
  signal?: AbortSignal,
): Promise<ActionPreview> =>
  (await call<ActionPreview>('POST', '/v2/devices/actions/preview', { body, signal })).body;

/** The purposes that the account has stored. */
export async function listPurposes(signal?: AbortSignal) {
  type Stored = { purposeUuids: string[]; purposeNames: string[] };
  const { body } = await call<Stored>('GET', '/v2/purposes', { signal });
  return body.purposeUuids.map((uuid, place) => ({ uuid, name: body.purposeNames[place] ?? '' }));
}

/** A stored purpose that devices with a label get as their profile. */
export type LabelLimit = { label: string; purposeUuid: string };

/** In the order in which labels count. */
export const listLabelLimits = async (signal?: AbortSignal): Promise<LabelLimit[]> =>
  (await call<{ limits: LabelLimit[] }>('GET', '/v2/devices/labels/limits', { signal })).body
    .limits;

/** Replaces them, by a job. */
export const saveLabelLimits = async (limits: readonly LabelLimit[]): Promise<string> => {
  const body = { limits };
  return (await call<{ jobId: string }>('PUT', '/v2/devices/labels/limits', { body })).body.jobId;
};

/** What is installed where, newest first. */
export const listProfiles = (
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ profiles: ListedProfile[] }>> =>
  call('GET', '/v2/profiles', { query: { cursor, limit: pageSize }, signal });

export const getProfile = async (pId: string, signal?: AbortSignal): Promise<Purpose[]> =>
  (await call<{ purposes: Purpose[] }>('GET', `/v2/profiles/${pId}`, { signal })).body.purposes;

export const listJobs = async (signal?: AbortSignal): Promise<JobEntry[]> =>
  (await call<JobList>('GET', '/v2/jobs', { signal })).body.jobs;

export const getJob = async (jobId: string, signal?: AbortSignal): Promise<Job> =>
  (await call<Job>('GET', `/v2/jobs/${jobId}`, { signal })).body;

export const stopJob = (jobId: string) => call('DELETE', `/v2/jobs/${jobId}`);

export const listLabels = async (signal?: AbortSignal): Promise<LabelList['labels']> =>
  (await call<LabelList>('GET', '/v2/devices/labels', { signal })).body.labels;

/** A device's senses, by sId. */
export function sensesOf({ module }: Pick<Configuration, 'module'>): Map<string, Sense> {
  const senses = module.flatMap(({ senses }) => senses);
  return new Map(senses.map((sense) => [sense.sId, sense]));
}

export const nameOfSense = (sId: string, sense: Sense | undefined): string => sense?.name ?? sId;
