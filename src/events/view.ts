import type { EventView } from './schema.ts';

/** An event as the tables keep it; `body` holds what type and time leave over. */
export type EventRow = { type: 'device' | 'sense'; ts: number; seq: number; body: object };

/** An event as clients see it; specification section 6. */
export function toEventView(row: EventRow, deviceAuthUuid: string): EventView {
  const { type, ts, seq, body } = row;
  // The body was written by `recordEvents` from the type that the view's schema describes.
  return { timestamp: ts, type, deviceAuthUuid, ...body, eventId: String(seq) } as EventView;
}
