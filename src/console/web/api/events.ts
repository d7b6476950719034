import { call, callLines, type Answer } from './request.ts';
import type { EventView } from './types.ts';

export const listEvents = (
  uuid: string,
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ events: EventView[] }>> =>
  call('GET', `/v2/events/${uuid}`, { query: { limit: 10, cursor }, signal });

export type EventRange = { start: number; end: number; most: number };

/** The newest events of a range, newest first. `isCut`: there are more. */
export async function queryEvents(
  uuid: string,
  { start, end, most }: EventRange,
  signal?: AbortSignal,
): Promise<{ events: EventView[]; isCut: boolean }> {
  const query = { devices: uuid, start, end, order: 'desc' };
  const events = await callLines<EventView>('/v2/events', { query, signal }, most + 1);
  return { events: events.slice(0, most), isCut: events.length > most };
}

/** The move that led to where the device was then. */
export async function lastMoveBefore(
  uuid: string,
  ts: number,
  signal?: AbortSignal,
): Promise<EventView | null> {
  const query = { type: 'device', end: ts, limit: 1 };
  const path = `/v2/events/${uuid}`;
  const { body } = await call<{ events: EventView[] }>('GET', path, { query, signal });
  return body.events[0] ?? null;
}
