import { call, type Answer } from './request.ts';
import type {
  Configuration,
  NotificationOutcome,
  OneDevice,
  RefusedLoginList,
  Registration,
  RemovedLoginList,
} from './types.ts';

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

/** Of devices that were removed, the newest first. */
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
