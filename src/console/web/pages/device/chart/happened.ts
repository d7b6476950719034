import { listAlarms } from '../../../api/alarms.ts';
import { lastMoveBefore, queryEvents } from '../../../api/events.ts';
import type { EventView, ListedAlarm } from '../../../api/types.ts';
import type { Span } from './span.ts';

/** What happened to a device in a span. */
export type Happened = {
  /** Newest first. */
  events: readonly EventView[];
  /** There were more, older ones. */
  isCut: boolean;
  /** Its last move before the span; null: none is known. */
  before: EventView | null;
  alarms: readonly ListedAlarm[];
};

/** More marks than that nobody tells apart. */
const mostEvents = 500;
const alarmPages = 3;

export async function loadHappened(
  uuid: string,
  span: Span,
  signal: AbortSignal,
): Promise<Happened> {
  const start = Math.floor(span.start);
  const end = Math.ceil(span.end);
  const [{ events, isCut }, before, alarms] = await Promise.all([
    queryEvents(uuid, { start, end, most: mostEvents }, signal),
    lastMoveBefore(uuid, start, signal),
    listAlarmsOf(uuid, span, signal),
  ]);
  return { events, isCut, before, alarms };
}

/** Alarms that were open at some time of the span; the newest 300 of the device are looked at. */
async function listAlarmsOf(uuid: string, span: Span, signal: AbortSignal): Promise<ListedAlarm[]> {
  const found: ListedAlarm[] = [];
  let cursor = '';
  for (let page = 0; page < alarmPages; page += 1) {
    const filter = { state: '', device: uuid, cursor, limit: 100 };
    const { body, next } = await listAlarms(filter, signal);
    found.push(...body.alarms);
    if (next === null) break;
    cursor = next;
  }
  return found.filter(
    ({ sinceTs, closedTs }) => sinceTs < span.end && (closedTs ?? span.end) > span.start,
  );
}
