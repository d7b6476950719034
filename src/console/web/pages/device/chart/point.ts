import type { BucketView } from '../../../api/types.ts';

/** A moment, or a bucket from `ts` on. */
export type Point = Pick<BucketView, 'ts' | 'min' | 'max' | 'avg' | 'last' | 'count'>;

/** What a sense measured, oldest first. `widthMs`: of its buckets; 0: these are single values. */
export type Series = { sId: string; widthMs: number; points: readonly Point[] };
