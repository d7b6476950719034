import type { StreamedRow, StreamScope } from './feed.ts';

/** What a stream is sent, and how. Streams whose audience has the same key are written for once. */
export type Audience = StreamScope & {
  key: string;
  takes: (row: StreamedRow) => boolean;
  /** Each message has its own id, and events have no SSE name. Else see `Piece`. */
  hasIds: boolean;
};

/** All of a scope, as the streams of events alone are sent it. */
export function audienceOf(scope: StreamScope): Audience {
  const { deviceId } = scope;
  return {
    ...scope,
    key: String(deviceId),
    takes: (row) => deviceId === null || row.deviceId === deviceId,
    hasIds: true,
  };
}
