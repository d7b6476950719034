import { call, type Answer } from './request.ts';
import type { ListedAlarm } from './types.ts';

export type AlarmFilter = {
  state?: string;
  device?: string;
  label?: string;
  cursor?: string;
  limit: number;
};
export type AlarmPage = { alarms: ListedAlarm[] };

/** The newest first. What is empty filters nothing. */
export const listAlarms = (
  { state, device, label, cursor, limit }: AlarmFilter,
  signal?: AbortSignal,
): Promise<Answer<AlarmPage>> =>
  call('GET', '/v2/alarms', { query: { state, device, label, cursor, limit }, signal });

const act = (alarmId: number, what: string, method: 'POST' | 'DELETE' = 'POST', body?: unknown) =>
  call(method, `/v2/alarms/${alarmId}/${what}`, body === undefined ? {} : { body });

export const acknowledgeAlarm = (alarmId: number) => act(alarmId, 'acknowledge');
export const closeAlarm = (alarmId: number) => act(alarmId, 'close');
export const unsnoozeAlarm = (alarmId: number) => act(alarmId, 'snooze', 'DELETE');
export const snoozeAlarm = (alarmId: number, body: { untilTs: number; reason?: string }) =>
  act(alarmId, 'snooze', 'POST', body);
