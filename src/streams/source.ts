import type { Reach } from './reach.ts';
import type { StreamPiece } from './server-sent.ts';

/** What one connection can carry. `alarms`: changes of alarms. `devices`: who connects and leaves. */
export const streamKinds = ['events', 'measurements', 'alarms', 'devices'] as const;
export type StreamKind = (typeof streamKinds)[number];

export type AskedSource = {
  kinds: ReadonlySet<StreamKind>;
  reach: Reach;
  /** Of measurements: only these senses, and so many values of each in a second. */
  senses: readonly string[] | undefined;
  maxHz: number | undefined;
  /** Where the reader was, as a piece's `position`; null: it is new. */
  from: string | null;
};

/** A part of a stream: it is joined, and read once. */
export type Source = {
  /** Ends after `leave`, and where the reader is dropped. */
  pieces: (until: AbortSignal) => AsyncGenerator<StreamPiece<string>>;
  leave: () => void;
};

/** Throws `invalid-input` where `from` is no position of this source. */
export type OpenSource = (asked: AskedSource) => Promise<Source>;
