import { call, type Answer } from './request.ts';
import type {
  Configuration,
  DescribedDevice,
  Description,
  DeviceList,
  Registration,
  RejectionList,
} from './types.ts';

export type ListedDevice = DeviceList['devices'][number];
export type Rejection = RejectionList['rejections'][number];
export type FleetFilter = {
  search: string;
  presence: string;
  /** In addresses of before there was `presence`. */
  online: string;
  profile: string;
  alarm: string;
  refused: string;
  muted: string;
  label: string;
  sort: string;
  cursor: string;
};

/** Devices of a page. */
export const pageSize = 50;

export const listDevices = (
  filter: FleetFilter,
  signal?: AbortSignal,
): Promise<Answer<DeviceList>> =>
  call('GET', '/v2/devices', { query: { ...filter, limit: pageSize, counts: 'true' }, signal });

export type Protocol = 'mqtt' | 'http';

export const registerDevice = async (
  body: Configuration & { protocol?: Protocol },
): Promise<Registration> => (await call<Registration>('POST', '/v2/devices', { body })).body;

export const getConfiguration = async (uuid: string, signal?: AbortSignal) =>
  (await call<DescribedDevice>('GET', `/v2/devices/${uuid}/configuration`, { signal })).body;

export type Evaluation = { engine: 'service' | 'device' | 'none'; evaluation: Description | null };

export const explainEvaluation = async (uuid: string, signal?: AbortSignal) =>
  (await call<Evaluation>('GET', `/v2/devices/${uuid}/evaluation`, { signal })).body;

export const listRejections = async (uuid: string, signal?: AbortSignal) => {
  const query = { limit: 50 };
  const path = `/v2/devices/${uuid}/rejections`;
  return (await call<RejectionList>('GET', path, { query, signal })).body.rejections;
};

export const muteDevice = (uuid: string, body: { untilTs: number; reason?: string }) =>
  call('PUT', `/v2/devices/${uuid}/mute`, { body });

export const unmuteDevice = (uuid: string) => call('DELETE', `/v2/devices/${uuid}/mute`);
