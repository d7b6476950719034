import type { Readable } from 'node:stream';
import { z } from 'zod';
import { stream } from '../http/answer.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { checkScope, labelsOf } from '../http/router.ts';
import {
  type Reach,
  type Reaches,
  type ReachFilter,
  type ReaderRights,
  type RightsDeps,
  watchRights,
} from './reach.ts';
import {
  exampleTicket,
  MadeStream,
  MeasurementStreamQuery,
  NewStream,
  type OpenSource,
  parseIds,
  type Source,
  type SourceName,
  StreamedMessage,
  type StreamFilters,
  type StreamKind,
  writeIds,
} from './schema.ts';
import { cutOffWhenSlow, endWith, eventStreamType, merge } from './server-sent.ts';
import type { StreamCount } from './subscriber.ts';
import type { Tickets } from './tickets.ts';

type StreamsRoutesDeps = OpenStreamDeps & {
  tickets: Tickets;
  /** Rejects once the token is no longer valid. */
  authenticate: (token: string) => Promise<unknown>;
  /** How long a refused stream waits for its answer; 1 s. */
  refusalPauseMs?: number;
};

const documentation = {
  tag: 'Streams',
  streams: { types: [eventStreamType], json: false },
  response: StreamedMessage,
  answerBytes: 8_192,
  isEndless: true,
};

const ofMeasurements =
  'Server-sent events, one `measurement` for each value that a device measures, once it is ' +
  'stored. `Last-Event-ID` resumes: it sends every value later than the last one sent of its ' +
  'sense, at most a day back; values of the last seconds may be repeated. Values that arrived ' +
  'late in the meantime are only in the history; the first message, `opened`, says so. A ' +
  'reader that does not keep up is sent `dropped` with the reason, and resumes.';

type Asked = Pick<StreamReader, 'kinds' | 'filters'>;
type Holding = Pick<StreamReader, 'recheck' | 'signal' | 'onEnd'>;

/** Streams that carry measurements, alone or with events and alarms; an addition to the specification. */
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
      summary: 'Create a stream address',
      description:
        'For `EventSource`, which cannot send headers: one connection that carries the named ' +
        'kinds, under the SSE names `event`, `measurement`, `alarm`, `device`, `devices`, `command` and `commands`. A ' +
        'key needs the scope `devices:read` for the kind `devices`, `commands:read` for `commands`. The address can be opened ' +
        'for a minute, and again for a minute after each disconnection, one connection at a ' +
        'time: opening it again ends the previous connection. It expires with the session or ' +
        'key that created it and is as secret as they are.',
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
        // Checked here, where a page can read the answer: an `EventSource` learns only that its stream failed.
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
      summary: 'Stream from a stream address',
      description: `Server-sent events of the named kinds. ${ofMeasurements}`,
      auth: 'ticket',
      errors: [400, 403, 404],
      query: z.strictObject({
        ticket: z.string().meta({ description: 'From the address.', example: exampleTicket }),
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

/** The list of devices, their presence and their commands reveal more than measurements do. */
function checkKinds(account: Account, kinds: ReadonlySet<StreamKind>): void {
  if (kinds.has('devices')) checkScope(account, 'devices:read');
  if (kinds.has('commands')) checkScope(account, 'commands:read');
}

type OpenStreamDeps = RightsDeps & {
  reaches: Reaches;
  /** The quota `streams`: how many may be open at once in this process. */
  streams: StreamCount;
  sources: Record<SourceName, OpenSource>;
  /** How long a reader may leave a chunk unread. */
  patienceMs: number;
};

type StreamReader = ReaderRights & {
  /** The labels that the reader's key is confined to; null: no confinement. */
  labels: readonly string[] | null;
  kinds: ReadonlySet<StreamKind>;
  filters: StreamFilters;
  lastEventId: string;
  /** Called when the stream has ended, for whatever reason. */
  onEnd?: () => void;
};

/** Streams what is committed from now on, or since the reader's last position, each kind under its own name. */
async function openStream(deps: OpenStreamDeps, reader: StreamReader): Promise<Readable> {
  const { accountId, onEnd } = reader;
  const releases: (() => void)[] = onEnd ? [onEnd] : [];
  const release = (): void => {
    for (const end of releases.splice(0)) end();
  };
  try {
    releases.push(await deps.streams.count(accountId));
    const reaches = await openReaches(deps, reader, releases);
    const positions = parseIds(reader.lastEventId);
    const sources: [SourceName, Source][] = [];
    for (const name of sourcesOf(reader.kinds)) {
      const { kinds, filters } = reader;
      const { senses, maxHz } = filters;
      const from = positions.get(name) ?? null;
      const source = await deps.sources[name]({ kinds, reach: reaches[name], senses, maxHz, from });
      releases.push(source.leave);
      sources.push([name, source]);
    }
    const looks = [...new Set(Object.values(reaches))];
    const recheck = () => Promise.all([reader.recheck(), ...looks.map((reach) => reach.refresh())]);
    const watch = watchRights(deps, { ...reader, recheck });
    releases.push(watch.release);
    const readable = cutOffWhenSlow(write(sources, watch.until), deps.patienceMs);
    // `close` also comes if the reader disconnects before the first read.
    readable.once('close', release);
    return readable;
  } catch (error) {
    release();
    throw error;
  }
}

/** Finds which devices each part covers. Adds what must be released to `releases`. */
async function openReaches(
  deps: OpenStreamDeps,
  reader: StreamReader,
  releases: (() => void)[],
): Promise<Record<SourceName, Reach>> {
  const filter = toReachFilter(reader);
  const events = await deps.reaches.open(filter);
  releases.push(events.leave);
  const devices = reader.filters.measurementDevices;
  const { reach } = events;
  const all = { events: reach, measurements: reach, devices: reach, commands: reach };
  if (!devices) return all;
  const measurements = await deps.reaches.open({ ...filter, devices });
  releases.push(measurements.leave);
  return { ...all, measurements: measurements.reach };
}

function toReachFilter({ accountId, labels, filters }: StreamReader): ReachFilter {
  return { accountId, labels, devices: filters.devices, label: filters.label };
}

function sourcesOf(kinds: ReadonlySet<StreamKind>): SourceName[] {
  const names: SourceName[] = kinds.has('events') || kinds.has('alarms') ? ['events'] : [];
  if (kinds.has('measurements')) names.push('measurements');
  if (kinds.has('devices')) names.push('devices');
  if (kinds.has('commands')) names.push('commands');
  return names;
}

async function* write(
  sources: readonly (readonly [SourceName, Source])[],
  until: AbortSignal,
): AsyncGenerator<Buffer> {
  const leaveAll = (): void => {
    for (const [, { leave }] of sources) leave();
  };
  until.addEventListener('abort', leaveAll);
  const positions = new Map<SourceName, string>();
  try {
    const pieces = sources.map(([name, source]) => [name, source.pieces(until)] as const);
    for await (const [name, { bytes, position }] of merge(pieces)) {
      if (until.aborted) return;
      positions.set(name, position);
      yield endWith(bytes, writeIds(positions));
    }
  } finally {
    until.removeEventListener('abort', leaveAll);
    leaveAll();
  }
}
