import { z } from 'zod';
import type { Bus } from '../bus/bus.ts';
import { AlarmChange } from '../contract/alarm.ts';
import type { NewEvent } from '../contract/event.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { stream } from '../http/answer.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { DeviceParams, linkNext } from '../http/schema.ts';
import { slicesOf } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import type { Reaches } from '../streams/reach.ts';
import { eventStreamType } from '../streams/server-sent.ts';
import type { StreamCount } from '../streams/subscriber.ts';
import { eventExportRoute } from './export.ts';
import type { WalkAlarms } from './feed.ts';
import { eventFilterMembers, type EventFilters, findContradictions } from './filter.ts';
import { listEvents } from './queries.ts';
import { EventList, EventQuery, EventView, toEventView } from './schema.ts';
import {
  type EventFilter,
  eventFilterOf,
  type EventBroadcaster,
  openEventStream,
} from './stream.ts';

/** Specification section 4.4. */
export function eventRoutes(deps: StreamRoutesDeps): Route[] {
  const { db, getDeviceId } = deps;
  return [
    // These come first, because their paths look like a device's.
    ...streamRoutes(deps),
    eventExportRoute(deps),
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
        const last = page.at(-1);
        if (last && found.length > page.length) linkNext(request, [last.ts, last.key]);
        return { events: page.map((row) => toEventView(row, params.deviceAuthUuid)) };
      },
    }),
  ];
}

type StreamRoutesDeps = {
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

const StreamedEventsQuery = z.strictObject(eventFilterMembers);

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
function streamRoutes(deps: StreamRoutesDeps): Route[] {
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

/**
 * Records a batch of events in the caller's transaction and returns those that are new. An event that was
 * delivered before (same device, type, time and key) is recorded once.
 */
export async function recordEvents(tx: Sql, events: readonly NewEvent[]): Promise<NewEvent[]> {
  if (events.length === 0) return [];
  const given = new Map<string, NewEvent>();
  for (const event of events) {
    const name = nameOf(event.deviceId, event.event.type, event.event.ts, event.key);
    if (!given.has(name)) given.set(name, event);
  }
  const named = [...given];
  const recorded: NewEvent[] = [];
  for (const some of slicesOf(named, atOnce)) recorded.push(...(await recordNamed(tx, some)));
  return recorded;
}

/** Events per statement. One measurement can fire thousands, and writing each out takes 10 µs. */
const atOnce = 400;

async function recordNamed(tx: Sql, named: [string, NewEvent][]): Promise<NewEvent[]> {
  const rows = await insertEvents(
    tx,
    named.map(([, event]) => event),
  );
  const fresh = new Set(rows.map((row) => nameOf(row.device_id, row.type, row.ts, row.key)));
  return named.filter(([name]) => fresh.has(name)).map(([, event]) => event);
}

type InsertedRow = { device_id: number; type: string; ts: number; key: string };

async function insertEvents(tx: Sql, events: NewEvent[]): Promise<InsertedRow[]> {
  const senses = events.flatMap((event) =>
    sensesOf(event).map((sId) => ({
      deviceId: event.deviceId,
      ts: event.event.ts,
      key: event.key,
      sId,
    })),
  );
  const { rows } = await tx.query<InsertedRow>({
    name: 'record-events',
    text: `
      with fresh as (
        insert into event (device_id, type, ts, key, body)
        select device_id, type, ms_to_timestamp(ms), key, body::json
          from unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[])
            as g (device_id, type, ms, key, body)
            on conflict do nothing
        returning device_id, type, ts, key, seq, body
      ), by_sense as (
        insert into event_sense (device_id, s_id, ts, key, seq, body)
        select f.device_id, g.s_id, f.ts, f.key, f.seq, f.body
          from unnest($6::bigint[], $7::bigint[], $8::text[], $9::text[])
            as g (device_id, ms, key, s_id)
          join fresh f
            on f.device_id = g.device_id and f.type = 'sense'
           and f.ts = ms_to_timestamp(g.ms) and f.key = g.key
            on conflict do nothing
      ), tail as (
        insert into event_feed (account_id, seq, device_id, type, ts, body)
        select g.account_id, f.seq, f.device_id, f.type, f.ts, f.body
          from fresh f
          join (select distinct device_id, account_id
                  from unnest($1::bigint[], $10::bigint[]) as u (device_id, account_id)) g
         using (device_id)
      )
      select device_id, type, ts, key from fresh`,
    values: [
      events.map((e) => e.deviceId),
      events.map((e) => e.event.type),
      events.map((e) => e.event.ts),
      events.map((e) => e.key),
      events.map(bodyOf),
      senses.map((s) => s.deviceId),
      senses.map((s) => s.ts),
      senses.map((s) => s.key),
      senses.map((s) => s.sId),
      events.map((e) => e.accountId),
    ],
  });
  return rows;
}

function nameOf(deviceId: number, type: string, ts: number, key: string): string {
  return `${deviceId} ${type} ${ts} ${key}`;
}

/** Type and time have columns of their own. */
function bodyOf({ event }: NewEvent): string {
  const { type: _type, ts: _ts, ...body } = event;
  return JSON.stringify(body);
}

function sensesOf({ event }: NewEvent): string[] {
  return event.type === 'sense' ? [...new Set(event.cause.senses.map(({ sId }) => sId))] : [];
}
