import { type Answer, call, callLines } from './request.ts';
import type { AlarmGroup, AlarmsTold, EventView, ListedAlarm, Purpose } from './types.ts';

export const listEvents = (
  uuid: string,
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ events: EventView[] }>> =>
  call('GET', `/v2/events/${uuid}`, { query: { limit: 10, cursor }, signal });

type EventRange = { start: number; end: number; most: number };

/** The newest events of a range, newest first. `isCut`: there are more. */
export async function queryEvents(
  uuid: string,
  { start, end, most }: EventRange,
  signal?: AbortSignal,
): Promise<{ events: EventView[]; isCut: boolean }> {
  const query = { devices: uuid, start, end, order: 'desc' };
  const events = await callLines<EventView>('/v2/events', { query, signal }, most + 1);
  return { events: events.slice(0, most), isCut: events.length > most };
}

/** The event that led to the state that the device was in at that time. */
export async function lastMoveBefore(
  uuid: string,
  ts: number,
  signal?: AbortSignal,
): Promise<EventView | null> {
  const query = { type: 'device', end: ts, limit: 1 };
  const path = `/v2/events/${uuid}`;
  const { body } = await call<{ events: EventView[] }>('GET', path, { query, signal });
  return body.events[0] ?? null;
}

type AlarmQuery = {
  state?: string;
  device?: string;
  label?: string;
  /** A part of the device's or the event's name. */
  search?: string;
  /** The name of an event, as a group has it. */
  event?: string;
  /** The number of a message: the alarms that it was about. */
  notification?: string;
  sort?: string;
  /** Asks for `groups`. */
  group?: string;
  /** Asks for `told`. */
  told?: 'true';
  cursor?: string;
  limit: number;
};
type AlarmPage = {
  alarms: ListedAlarm[];
  groups?: AlarmGroup[];
  told?: AlarmsTold;
  /** How many match, on all pages. */
  total: number;
};

/** Which alarms an action on many is about: the same filters as in the list. */
export type AlarmFilter = Pick<AlarmQuery, 'state' | 'device' | 'search' | 'event'> & {
  label?: string[];
  notification?: number;
};

/** Without members that are empty. */
export function toFilter({
  label,
  notification,
  ...of
}: Omit<AlarmFilter, 'label' | 'notification'> & { label: string; notification: string }) {
  const given = Object.entries(of).filter(([, value]) => value !== '');
  return {
    ...Object.fromEntries(given),
    ...(label === '' ? {} : { label: [label] }),
    ...(notification === '' ? {} : { notification: Number(notification) }),
  } as AlarmFilter;
}

export type AlarmAction = {
  action: 'acknowledge' | 'close' | 'reopen' | 'snooze' | 'unsnooze';
  note?: string;
  force?: boolean;
  untilTs?: number;
  reason?: string;
  alarmIds?: readonly number[];
  filter?: AlarmFilter;
  /** The alarms of an earlier job, to undo it. */
  jobId?: string;
};

/** Starts an action on many alarms; the service finishes it even if this page is closed. */
export const startAlarmAction = async (body: AlarmAction): Promise<string> =>
  (await call<{ jobId: string }>('POST', '/v2/alarms/actions', { body })).body.jobId;

/** Newest first, unless it asks otherwise. An empty member does not filter. */
export const listAlarms = (filter: AlarmQuery, signal?: AbortSignal): Promise<Answer<AlarmPage>> =>
  call('GET', '/v2/alarms', { query: { ...filter, counts: 'true' }, signal });

/** Pages of alarms that are read to look at all: of more, nobody would wait for the rest. */
const mostPages = 20;

/** All alarms that a filter finds; null if there are too many to look at each. */
export async function walkAlarms(
  { notification, label = [], ...filter }: AlarmFilter,
  signal?: AbortSignal,
): Promise<ListedAlarm[] | null> {
  const found: ListedAlarm[] = [];
  const of = notification === undefined ? {} : { notification: String(notification) };
  const [first = ''] = label;
  let cursor: string | null = '';
  for (let read = 0; read < mostPages; read += 1) {
    const asked = { ...filter, ...of, label: first, cursor, limit: 100 };
    const page: Answer<AlarmPage> = await call('GET', '/v2/alarms', { query: asked, signal });
    const { body, next } = page;
    found.push(...body.alarms);
    cursor = next;
    if (cursor === null) return found;
  }
  return null;
}

const act = (alarmId: number, what: string, method: 'POST' | 'DELETE' = 'POST', body?: unknown) =>
  call(method, `/v2/alarms/${alarmId}/${what}`, body === undefined ? {} : { body });

/** A note says what was found or done. */
export const acknowledgeAlarm = (alarmId: number, note?: string) =>
  act(alarmId, 'acknowledge', 'POST', note ? { note } : {});
/** Refused (`condition-holds`) while its condition holds, without `force`. */
export const closeAlarm = (alarmId: number, how: { note?: string; force?: boolean } = {}) =>
  act(alarmId, 'close', 'POST', how);
/** Takes back that it was closed, within a minute. */
export const reopenAlarm = (alarmId: number) => act(alarmId, 'reopen');
export const unsnoozeAlarm = (alarmId: number) => act(alarmId, 'snooze', 'DELETE');
export const snoozeAlarm = (alarmId: number, body: { untilTs: number; reason?: string }) =>
  act(alarmId, 'snooze', 'POST', body);

/** Installs the purposes as the device's whole profile. */
export const installPurposes = (uuid: string, purposes: readonly Purpose[]) =>
  call('POST', '/v2/devices/profile', { body: { deviceAuthUuids: [uuid], purposes } });
