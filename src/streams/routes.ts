import { z } from 'zod';
import { createRefuseSlowly } from '../http/refuse-slowly.ts';
import { checkScope, labelsOf } from '../http/rights.ts';
import { stream } from '../http/answer.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { openStream, type OpenStreamDeps, type StreamReader } from './open-stream.ts';
import {
  exampleTicket,
  MadeStream,
  MeasurementStreamQuery,
  NewStream,
  StreamedMessage,
} from './schema.ts';
import { eventStreamType } from './server-sent.ts';
import type { StreamKind } from './source.ts';
import type { Tickets } from './tickets.ts';

export type StreamsRoutesDeps = OpenStreamDeps & {
  tickets: Tickets;
  /** Rejects once a token opens nothing any more. */
  authenticate: (token: string) => Promise<unknown>;
  /** How long a refused stream waits for its answer; 1 s. */
  refusalPauseMs?: number;
};

const documentation = {
  tag: 'Streams',
  streams: { types: [eventStreamType], json: false },
  response: StreamedMessage,
  room: 8_192,
  isEndless: true,
};

const ofMeasurements =
  'Server-sent events, `measurement` each: what devices measure, once it is stored. `Last-Event-ID` resumes: of ' +
  'each sense all that is later than the last value that was sent of it, of a day at most; values of the last ' +
  'seconds may come again. What arrived late meanwhile is in the history only. The first message, `opened`, ' +
  'says so. Who does not keep up is sent `dropped` with the reason, and resumes.';

type Asked = Pick<StreamReader, 'kinds' | 'filters'>;
type Holding = Pick<StreamReader, 'recheck' | 'signal' | 'onEnd'>;

/** Streams that carry what devices measure, alone or with events and alarms; beyond the specification. */
export function streamsRoutes(deps: StreamsRoutesDeps): Route[] {
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  const open = async (
    account: Account,
    request: RequestInfo,
    asked: Asked,
    { recheck, signal, ...holding }: Holding,
    resumedFrom = '',
  ) => {
    checkKinds(account, asked.kinds);
    const { accountId, sessionId } = account;
    request.setHeader('X-Accel-Buffering', 'no');
    const lastEventId = request.header('last-event-id') || resumedFrom;
    const labels = labelsOf(account);
    const rights = { accountId, sessionId, labels, recheck, signal };
    const reader = { ...rights, ...asked, ...holding, lastEventId };
    return stream(eventStreamType, await openStream(deps, reader));
  };
  return [
    defineRoute({
      ...documentation,
      name: 'streamMeasurements',
      scope: 'data:read',
      method: 'get',
      path: '/v2/measurements/stream',
      summary: 'Stream what devices measure',
      description: ofMeasurements,
      auth: 'account',
      errors: [400, 403, 404],
      query: MeasurementStreamQuery,
      handler: ({ account, query, request }) => {
        const recheck = () => deps.authenticate(request.credential);
        const senses = query.senses?.length ? query.senses : undefined;
        const asked = { kinds: new Set(['measurements'] as const), filters: { ...query, senses } };
        const { signal } = request;
        return refuseSlowly(() => open(account, request, asked, { recheck, signal }), request);
      },
    }),
    defineRoute({
      name: 'makeStream',
      scope: 'data:read',
      method: 'post',
      path: '/v2/streams',
      summary: 'Make an address to stream from',
      description:
        'For `EventSource`, which can send no header: one connection that carries the kinds named, under the SSE ' +
        'names `event`, `measurement`, `alarm`, `device` and `devices`. A key needs `devices:read` for the kind ' +
        '`devices`. The address opens for a minute, and again for a minute after each ' +
        'break, one connection at a time: opened once more it ends the one before. It ends with the session or ' +
        'the key that made it, and is as secret as they are.',
      tag: 'Streams',
      auth: 'account',
      errors: [403, 404],
      body: NewStream,
      example: { kinds: ['events', 'measurements', 'devices'], filters: { maxHz: 1 } },
      response: MadeStream,
      handler: async ({ account, body, request }) => {
        checkKinds(account, new Set(body.kinds));
        const { accountId } = account;
        const { devices, label, measurementDevices } = body.filters;
        // Said here, where a page can read the answer: of a stream it is told nothing but that it failed.
        const labelPath = '/filters/label';
        const reached = { accountId, labels: labelsOf(account), label, labelPath };
        for (const named of [devices, measurementDevices ?? devices])
          (await deps.reaches.open({ ...reached, devices: named })).leave();
        const { ticket, expiresTs } = await deps.tickets.make(account, body);
        return { url: `/v2/streams?ticket=${ticket}`, expiresTs, timestamp: request.now() };
      },
    }),
    defineRoute({
      ...documentation,
      name: 'openStream',
      scope: 'data:read',
      method: 'get',
      path: '/v2/streams',
      summary: 'Stream from an address that was made',
      description: `Server-sent events of the kinds that were named. ${ofMeasurements}`,
      auth: 'ticket',
      errors: [400, 403, 404],
      query: z.strictObject({
        ticket: z.string().meta({ description: 'Of the address.', example: exampleTicket }),
      }),
      handler: ({ account, query, request }) =>
        refuseSlowly(async () => {
          const opening = await deps.tickets.open(query.ticket);
          const { kinds, filters, lastEventId } = opening.asked;
          const signal = AbortSignal.any([request.signal, opening.signal]);
          const holding = { recheck: opening.renew, signal, onEnd: opening.close };
          return open(account, request, { kinds: new Set(kinds), filters }, holding, lastEventId);
        }, request),
    }),
  ];
}

/** Which devices there are, and whether they are there, is more than what they measure. */
function checkKinds(account: Account, kinds: ReadonlySet<StreamKind>): void {
  if (kinds.has('devices')) checkScope(account, 'devices:read');
}
