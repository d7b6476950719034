import type { Reach } from '../streams/reach.ts';
import type { StreamedRow, StreamScope } from './feed.ts';

/** What a stream is sent, and how. Streams whose audience has the same key are written for once. */
export type Audience = StreamScope & {
  key: string;
  takes: (row: StreamedRow) => boolean;
  /** Each message has its own id, and events have no SSE name. Else see `StreamPiece`. */
  hasIds: boolean;
};

/** All of an account's devices, or one of them, as the streams of events alone are sent it. */
export function audienceOf(deviceId: number | null, reach: Reach): Audience {
  return {
    accountId: reach.accountId,
    deviceId,
    key: `events of ${reach.key}`,
    takes: (row) => reach.has(row.deviceId),
    hasIds: true,
  };
}
