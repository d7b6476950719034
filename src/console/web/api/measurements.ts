import { call } from './request.ts';
import { useQuery, type Query } from './cache.ts';
import type { BucketView, LatestView } from './types.ts';

async function listLatest(uuids: readonly string[], signal?: AbortSignal): Promise<LatestView[]> {
  if (uuids.length === 0) return [];
  const query = { devices: uuids.join(','), describe: 'true', limit: 500 };
  const path = '/v2/measurements/latest';
  return (await call<{ latest: LatestView[] }>('GET', path, { query, signal })).body.latest;
}

const everyMs = 3_000;

/** The newest values of devices, as they arrive: the one place that knows how they are waited for. */
export function useLatest(uuids: readonly string[]): Query<LatestView[]> {
  return useQuery(`latest/${uuids.join(',')}`, (signal) => listLatest(uuids, signal), { everyMs });
}

export type BucketRange = { start: number; end: number; bucket: string };

export const listBuckets = async (
  uuid: string,
  { start, end, bucket }: BucketRange,
  signal?: AbortSignal,
): Promise<BucketView[]> => {
  const query = { start, end, bucket };
  const path = `/v2/measurements/${uuid}`;
  return (await call<{ buckets: BucketView[] }>('GET', path, { query, signal })).body.buckets;
};
