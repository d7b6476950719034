import { z } from 'zod';
import type { Bus } from '../bus/bus.ts';
import { AlarmChange } from '../contract/alarm.ts';
import type { Database } from '../db/database.ts';
import { listAskedDevices } from '../devices/select.ts';
import { asJsonList, asLines, typeOf } from '../exports/exports.ts';
import { stream } from '../http/answer.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { DeviceParams, lastTs, linkNext } from '../http/schema.ts';
import { csvType, ndjsonType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import type { Reaches } from '../streams/reach.ts';
import { eventStreamType } from '../streams/server-sent.ts';
import type { StreamCount } from '../streams/subscriber.ts';
import { csvHeader, refuseTooManyEvents, walkEvents } from './export.ts';
import type { WalkAlarms } from './feed.ts';
import { type EventFilters, findContradictions } from './filter.ts';
import {
  EventExport,
  EventExportQuery,
  EventList,
  EventQuery,
  EventView,
  StreamedEventsQuery,
  toEventView,
} from './schema.ts';
import { addMeanings } from './meanings.ts';
import { listEvents } from './store.ts';
import {
  type EventFilter,
  eventFilterOf,
  type EventBroadcaster,
  openEventStream,
} from './stream.ts';

/** Specification section 4.4. */
export function eventRoutes(deps: EventRoutesDeps): Route[] {
  const { db, getDeviceId } = deps;
  return [
    // These come first, because their paths look like a device's.
    ...streamRoutes(deps),
    exportRoute(deps),
    defineRoute({
      name: 'listDeviceEvents',
      scope: 'data:read',
      method: 'get',
      path: '/v2/events/{deviceAuthUuid}',
      summary: 'Get device events',
      description: 'Newest first. A Link header names the next page.',
      tag: 'Events',
      errors: [400, 401, 404, 503],
      responseHeaders: { Link: 'The next page, if there is one.' },
      auth: 'account',
      answerBytes: 2_097_152,
      params: DeviceParams,
      query: EventQuery,
      findContradictions,
      response: EventList,
      handler: async ({ params, query, account, request }) => {
        const deviceId = await getDeviceId(account.accountId, params.deviceAuthUuid);
        const { limit, cursor, ...range } = query;
        const filter = { deviceId, ...range, after: cursor };
        const found = await listEvents(db, filter, request.receivedTs);
        const page = found.slice(0, limit);
        await addMeanings(db, account.accountId, page);
        const last = page.at(-1);
        if (last && found.length > page.length) linkNext(request, [last.ts, last.key]);
        return { events: page.map((row) => toEventView(row, params.deviceAuthUuid)) };
      },
    }),
  ];
}

const formats = { 'application/json': 'json', [csvType]: 'csv', [ndjsonType]: 'ndjson' } as const;
const same = (text: string) => text;

/** The events of many devices in one answer, which is sent while it is read. */
function exportRoute({ db, exports }: Pick<EventRoutesDeps, 'db' | 'exports'>): Route {
  return defineRoute({
    name: 'queryEvents',
    scope: 'data:read',
    method: 'get',
    path: '/v2/events',
    summary: 'Query the events of many devices',
    description:
      'All events in the range from the named devices or from those with a label, one device ' +
      'after the other. JSON, CSV or, with `Accept: application/x-ndjson`, one line per event. ' +
      'At most a million events.',
    tag: 'Events',
    errors: [400, 404],
    streams: { types: [csvType, ndjsonType], json: true },
    auth: 'account',
    answerBytes: 16_777_216,
    query: EventExportQuery,
    findContradictions,
    response: EventExport,
    handler: async ({ query, account, request }) => {
      const { accountId } = account;
      const { devices: uuids, label, start = 0, end = lastTs, ...filters } = query;
      const named = { uuids, label, labels: labelsOf(account) };
      const devices = await listAskedDevices(db, accountId, named);
      const filter = { accountId, ...filters, start, end };
      await refuseTooManyEvents(db, devices, filter);
      const media = typeOf(request);
      const blocks = await exports.run(
        accountId,
        request.signal,
        walkEvents(db, devices, filter, formats[media]),
      );
      if (media === csvType) return stream(media, asLines(blocks, same, csvHeader));
      if (media === ndjsonType) return stream(media, asLines(blocks, same));
      return stream(media, asJsonList('events', blocks, same, request.now()));
    },
  });
}

type EventRoutesDeps = {
  db: Database;
  broadcaster: EventBroadcaster;
  /** The devices that a key confined to labels reaches. */
  reaches: Reaches;
  bus: Bus;
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  /** Rejects once the token is no longer valid. */
  authenticate: (token: string) => Promise<unknown>;
  /** Calls the listener for each account that the operator disables. Returns a function that unsubscribes. */
  onAccountDisabled?: (listener: (accountId: number) => void) => () => void;
  /** The quota `streams`: how many may be open at once in this process. */
  streams: StreamCount;
  exports: Pick<Exports, 'page' | 'run'>;
  /** Lists alarms that changed while a reader was away for long. */
  walkAlarms?: WalkAlarms;
  /** 15 s. */
  heartbeatMs?: number;
  /** How long a reader may leave a page unread; 30 s. */
  patienceMs?: number;
  /** How long a refused stream waits for its answer; 1 s. */
  refusalPauseMs?: number;
};

type Asked = { deviceUuid: string | null; filters: EventFilters };

const documentation = {
  method: 'get' as const,
  tag: 'Events',
  streams: { types: [eventStreamType], json: false },
  auth: 'account' as const,
  response: z.union([EventView, AlarmChange]).meta({ id: 'EventMessage' }),
  answerBytes: 8_192,
  isEndless: true,
  query: StreamedEventsQuery,
  findContradictions,
};

const description =
  'Server-sent events: everything stored from now on, or after `Last-Event-ID`. A resumed ' +
  'stream may repeat events (compare `eventId`) but skips none. The stream ends when its token ' +
  'does. Changes of alarms have the SSE event name `alarm` (events have none), with ids in the ' +
  "same order. After more than a day's absence, each alarm that changed is sent once, as it is " +
  'now. The filters choose events; changes of alarms are always sent.';

/** Streams events as they are stored; an addition to the specification. */
function streamRoutes(deps: EventRoutesDeps): Route[] {
  const { db, bus, broadcaster, heartbeatMs = 15_000, patienceMs = 30_000 } = deps;
  const { onAccountDisabled = () => () => undefined } = deps;
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  const open = (account: Account, asked: Asked, request: RequestInfo) =>
    refuseSlowly(() => openCounted(account, asked, request), request);
  const openCounted = async (
    account: Account,
    { deviceUuid, filters }: Asked,
    request: RequestInfo,
  ) => {
    const { accountId } = account;
    const releases = [await deps.streams.count(accountId)];
    const release = (): void => {
      for (const end of releases.splice(0)) end();
    };
    try {
      const devices = deviceUuid === null ? undefined : [deviceUuid];
      const filter = { accountId, devices, labels: labelsOf(account) };
      const getDeviceId = async () =>
        deviceUuid === null
          ? null
          : broadcaster.alone(accountId, () => deps.getDeviceId(accountId, deviceUuid));
      const deviceId = await getDeviceId();
      const { reach, leave } = await deps.reaches.open(filter);
      releases.push(leave);
      const recheck = () => Promise.all([getDeviceId(), reach.refresh()]);
      const readable = await read(
        account,
        eventFilterOf(deviceId, reach, filters),
        recheck,
        request,
      );
      readable.once('close', release);
      return stream(eventStreamType, readable);
    } catch (error) {
      release();
      throw error;
    }
  };
  const read = async (
    { sessionId }: Account,
    filter: EventFilter,
    recheck: () => Promise<unknown>,
    request: RequestInfo,
  ) => {
    request.setHeader('X-Accel-Buffering', 'no');
    const { exports, walkAlarms } = deps;
    const rights = { bus, heartbeatMs, onAccountDisabled };
    return openEventStream(
      { ...rights, db, broadcaster, patienceMs, exports, walkAlarms },
      {
        filter,
        sessionId,
        lastEventId: request.header('last-event-id'),
        recheck: () => Promise.all([deps.authenticate(request.credential), recheck()]),
        signal: request.signal,
      },
    );
  };
  return [
    defineRoute({
      ...documentation,
      name: 'streamEvents',
      scope: 'data:read',
      path: '/v2/events/stream',
      summary: "Stream the events of all the account's devices",
      description,
      errors: [400, 401, 403, 503],
      handler: ({ account, query, request }) =>
        open(account, { deviceUuid: null, filters: query }, request),
    }),
    defineRoute({
      ...documentation,
      name: 'streamDeviceEvents',
      scope: 'data:read',
      path: '/v2/events/{deviceAuthUuid}/stream',
      summary: "Stream a device's events",
      description,
      errors: [400, 401, 403, 404, 503],
      params: DeviceParams,
      handler: ({ params, query, account, request }) =>
        open(account, { deviceUuid: params.deviceAuthUuid, filters: query }, request),
    }),
  ];
}
