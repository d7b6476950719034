import { call, type Answer } from './request.ts';
import type { EventView } from './types.ts';

export const listEvents = (
  uuid: string,
  cursor: string,
  signal?: AbortSignal,
): Promise<Answer<{ events: EventView[] }>> =>
  call('GET', `/v2/events/${uuid}`, { query: { limit: 10, cursor }, signal });
