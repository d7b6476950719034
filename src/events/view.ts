import type { AlarmChange, AlarmChangeRow } from '../contract/alarm.ts';
import type { EventView } from './schema.ts';

/** An event as the tables keep it; `body` holds what type and time leave over. */
export type EventRow = { type: 'device' | 'sense'; ts: number; seq: number; body: object };

/** A change of an alarm as streams send it. */
export function toAlarmChange({ ts, body, uuid }: AlarmChangeRow): AlarmChange {
  // The body was written by `saveAlarms` from the type that the schema describes.
  return { timestamp: ts, deviceAuthUuid: uuid, ...body } as AlarmChange;
}

/** An event as clients see it; specification section 6. */
export function toEventView(row: EventRow, deviceAuthUuid: string): EventView {
  const { type, ts, seq, body } = row;
  // The body was written by `recordEvents` from the type that the view's schema describes.
  return { timestamp: ts, type, deviceAuthUuid, ...body, eventId: String(seq) } as EventView;
}
