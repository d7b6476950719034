import { useEffect } from 'preact/hooks';
import { awaySince, type LiveValue, onStream, useWatched } from '../app/stream.ts';
import { type Answer, call, callLines } from './request.ts';
import { reload, revise, useKnown, useQuery, type Query } from './cache.ts';
import type { BucketView, LateSense, LatestView, MeasurementView } from './types.ts';

/** The newest value of each sense of these devices. */
export async function listLatest(
  uuids: readonly string[],
  signal?: AbortSignal,
): Promise<LatestView[]> {
  if (uuids.length === 0) return [];
  const query = { devices: uuids.join(','), describe: 'true', limit: 500 };
  const path = '/v2/measurements/latest';
  return (await call<{ latest: LatestView[] }>('GET', path, { query, signal })).body.latest;
}

const awayMs = 10_000;

/** The newest values of devices, kept up to date; the only place that knows how. */
export function useLatest(uuids: readonly string[]): Query<LatestView[]> {
  const key = `latest/${uuids.join(',')}`;
  const query = useQuery(key, (signal) => listLatest(uuids, signal));
  useWatched(uuids);
  useEffect(
    () =>
      onStream((message) => {
        if (message.kind === 'values') take(key, uuids, message.values);
      }),
    [key],
  );
  const isAway = awaySince.value !== null;
  useEffect(() => {
    if (!isAway) return undefined;
    const timer = setInterval(() => reload(key), awayMs);
    return () => clearInterval(timer);
  }, [key, isAway]);
  return query;
}

const nameOf = ({ deviceAuthUuid, sId }: LiveValue) => `${deviceAuthUuid}/${sId}`;

/** Replaces older values. If a sense is new, asks for its name. */
function take(key: string, uuids: readonly string[], values: readonly LiveValue[]): void {
  const newest = new Map<string, LiveValue>();
  for (const value of values)
    if (uuids.includes(value.deviceAuthUuid) && value.ts > (newest.get(nameOf(value))?.ts ?? 0))
      newest.set(nameOf(value), value);
  if (newest.size === 0) return;
  revise<LatestView[]>(key, (latest) =>
    latest.map((known) => {
      const value = newest.get(nameOf(known));
      newest.delete(nameOf(known));
      if (!value || value.ts <= known.ts) return known;
      return { ...known, val: value.val, ts: value.ts, beforeTs: known.ts };
    }),
  );
  if (newest.size > 0) reload(key);
}

/** What another component's `useLatest` knows of this device alone. */
export const useKnownLatest = (uuid: string): readonly LatestView[] =>
  (useKnown(`latest/${uuid}`) as LatestView[] | undefined) ?? [];

/** The newest values of 500 devices of the account, by device; `next`: of the devices after them. */
export const listLatestOfAll = (
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ latest: LatestView[] }>> =>
  call('GET', '/v2/measurements/latest', { query: { limit: 500, cursor }, signal });

/** `tz`: the time zone whose days the buckets follow. */
type BucketRange = { start: number; end: number; bucket: string; tz?: string };

export const listBuckets = async (
  uuid: string,
  query: BucketRange,
  signal?: AbortSignal,
): Promise<BucketView[]> => {
  const path = `/v2/measurements/${uuid}`;
  return (await call<{ buckets: BucketView[] }>('GET', path, { query, signal })).body.buckets;
};

/** Values of a range that came late, and what the limits would have marked of them. */
export const listLate = async (
  uuid: string,
  { start, end }: { start: number; end: number },
  signal?: AbortSignal,
): Promise<LateSense[]> => {
  const path = `/v2/measurements/${uuid}/late`;
  const query = { start: Math.floor(start), end: Math.ceil(end) };
  return (await call<{ senses: LateSense[] }>('GET', path, { query, signal })).body.senses;
};

type PointRange = { senses: readonly string[]; start: number; end: number };
type PointColumns = { sId: string; ts: number[]; val: unknown[] };

/** Single values, oldest first. */
export const listPoints = async (
  uuid: string,
  { senses, start, end }: PointRange,
  signal?: AbortSignal,
): Promise<PointColumns[]> => {
  const query = { devices: uuid, senses: senses.join(','), start, end, shape: 'columns' };
  const path = '/v2/measurements';
  return (await call<{ series: PointColumns[] }>('GET', path, { query, signal })).body.series;
};

/** The same, if there are at most `most` values; null if there are more, of which no more is read. */
export const listFewPoints = async (
  uuid: string,
  { senses, start, end }: PointRange,
  most: number,
  signal?: AbortSignal,
): Promise<PointColumns[] | null> => {
  const query = { devices: uuid, senses: senses.join(','), start, end };
  type Line = { sId: string; ts: number; val: unknown };
  const lines = await callLines<Line>('/v2/measurements', { query, signal }, most + 1);
  if (lines.length > most) return null;
  return [...Map.groupBy(lines, ({ sId }) => sId)].map(([sId, own]) => ({
    sId,
    ts: own.map(({ ts }) => ts),
    val: own.map(({ val }) => val),
  }));
};

/** The newest single values of one sense, newest first; `isCut`: there are more. */
export const listNewest = async (
  uuid: string,
  { sId, start, end }: { sId: string; start: number; end: number },
  signal?: AbortSignal,
): Promise<{ values: MeasurementView[]; isCut: boolean }> => {
  const query = { senses: sId, start, end, limit: 1_000 };
  const path = `/v2/measurements/${uuid}`;
  type Page = { measurements: MeasurementView[] };
  const { body, next } = await call<Page>('GET', path, { query, signal });
  return { values: body.measurements, isCut: next !== null };
};
