import { z } from 'zod';
import { AlarmChange } from '../contract/alarm.ts';
import { DeviceParams } from '../http/schema.ts';
import type { Bus } from '../bus/bus.ts';
import { labelsOf } from '../http/rights.ts';
import { createRefuseSlowly } from '../http/refuse-slowly.ts';
import { stream } from '../http/answer.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Database } from '../db/database.ts';
import type { Exports } from '../quotas/exports.ts';
import type { StreamCount } from '../streams/count-streams.ts';
import { audienceOf, type Audience } from './audience.ts';
import type { WalkAlarms } from './catch-up.ts';
import type { Hub } from './hub.ts';
import { EventView } from './schema.ts';
import type { Reaches } from '../streams/reach.ts';
import { eventStreamType } from '../streams/server-sent.ts';
import { openEventStream } from './stream.ts';

export type StreamRoutesDeps = {
  db: Database;
  hub: Hub;
  /** The devices that a key confined to labels reaches. */
  reaches: Reaches;
  bus: Bus;
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  /** Rejects once a token opens nothing any more. */
  authenticate: (token: string) => Promise<unknown>;
  /** Told of each account that the operator shuts out. Gives what ends that. */
  onAccountDisabled?: (listener: (accountId: number) => void) => () => void;
  /** The quota `streams`: those open at once in this process. */
  streams: StreamCount;
  exports: Pick<Exports, 'page' | 'run'>;
  /** Alarms that changed while a reader was away for long. */
  walkAlarms?: WalkAlarms;
  /** 15 s. */
  heartbeatMs?: number;
  /** How long a reader may let a page wait; 30 s. */
  patienceMs?: number;
  /** How long a refused stream waits for its answer; 1 s. */
  refusalPauseMs?: number;
};

const documentation = {
  method: 'get' as const,
  tag: 'Events',
  streams: { types: [eventStreamType], json: false },
  auth: 'account' as const,
  response: z.union([EventView, AlarmChange]).meta({ id: 'EventMessage' }),
  room: 8_192,
  isEndless: true,
};

const description =
  'Server-sent events: what is stored from now on, or from `Last-Event-ID` on. Resuming may repeat ' +
  'events (`eventId` tells) and skips none. The stream ends with its token. Changes of alarms have the ' +
  'SSE event name `alarm` (events have none) and the ids of the same order; who was away for more than a day ' +
  'is sent each alarm that changed once, as it is now.';

/** Events as they are stored; an addition to the specification. */
export function streamRoutes(deps: StreamRoutesDeps): Route[] {
  const { db, bus, hub, heartbeatMs = 15_000, patienceMs = 30_000 } = deps;
  const { onAccountDisabled = () => () => undefined } = deps;
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  const open = (account: Account, deviceUuid: string | null, request: RequestInfo) =>
    refuseSlowly(() => openCounted(account, deviceUuid, request), request);
  const openCounted = async (account: Account, deviceUuid: string | null, request: RequestInfo) => {
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
          : hub.alone(accountId, () => deps.getDeviceId(accountId, deviceUuid));
      const deviceId = await getDeviceId();
      const { reach, leave } = await deps.reaches.open(filter);
      releases.push(leave);
      const recheck = () => Promise.all([getDeviceId(), reach.refresh()]);
      const readable = await read(account, audienceOf(deviceId, reach), recheck, request);
      readable.once('close', release);
      return stream(eventStreamType, readable);
    } catch (error) {
      release();
      throw error;
    }
  };
  const read = async (
    { sessionId }: Account,
    audience: Audience,
    recheck: () => Promise<unknown>,
    request: RequestInfo,
  ) => {
    request.setHeader('X-Accel-Buffering', 'no');
    const { exports, walkAlarms } = deps;
    const rights = { bus, heartbeatMs, onAccountDisabled };
    return openEventStream(
      { ...rights, db, hub, patienceMs, exports, walkAlarms },
      {
        audience,
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
      handler: ({ account, request }) => open(account, null, request),
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
      handler: ({ params, account, request }) => open(account, params.deviceAuthUuid, request),
    }),
  ];
}
