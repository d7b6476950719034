import type { Readable } from 'node:stream';
import { parseIds, writeIds, type SourceName } from './ids.ts';
import type { StreamCount } from './count-streams.ts';
import { merge } from './merge.ts';
import type { Reach, Reaches, ReachFilter } from './reach.ts';
import { watchRights, type ReaderRights, type RightsDeps } from './rights.ts';
import type { StreamFilters } from './schema.ts';
import { cutOffWhenSlow, endWith } from './server-sent.ts';
import type { OpenSource, Source, StreamKind } from './source.ts';

export type OpenStreamDeps = RightsDeps & {
  reaches: Reaches;
  /** The quota `streams`: those open at once in this process. */
  streams: StreamCount;
  sources: Record<SourceName, OpenSource>;
  /** How long a reader may let a chunk wait. */
  patienceMs: number;
};

export type StreamReader = ReaderRights & {
  /** To which the reader's key is confined; null: to none. */
  labels: readonly string[] | null;
  kinds: ReadonlySet<StreamKind>;
  filters: StreamFilters;
  lastEventId: string;
  /** It has ended, however it did. */
  onEnd?: () => void;
};

/** What is committed from now on, or from where the reader was: each kind under its name. */
export async function openStream(deps: OpenStreamDeps, reader: StreamReader): Promise<Readable> {
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
    // Also where the reader has gone before anything was read.
    readable.once('close', release);
    return readable;
  } catch (error) {
    release();
    throw error;
  }
}

/** Which devices each part is about; what is to be released is added to `releases`. */
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
  if (!devices) return { events: reach, measurements: reach, devices: reach };
  const measurements = await deps.reaches.open({ ...filter, devices });
  releases.push(measurements.leave);
  return { events: reach, measurements: measurements.reach, devices: reach };
}

function toReachFilter({ accountId, labels, filters }: StreamReader): ReachFilter {
  return { accountId, labels, devices: filters.devices, label: filters.label };
}

function sourcesOf(kinds: ReadonlySet<StreamKind>): SourceName[] {
  const names: SourceName[] = kinds.has('events') || kinds.has('alarms') ? ['events'] : [];
  if (kinds.has('measurements')) names.push('measurements');
  if (kinds.has('devices')) names.push('devices');
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
