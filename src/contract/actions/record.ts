import { z } from 'zod';
import type { Action } from './action.ts';

export const recordMembers = {
  sendEvent: z.boolean().default(false),
  sendLog: z.boolean().default(false),
};

/** Records the firing as an event, as the event's own `eventLog` does. */
export const record: Action<{ cloud?: { sendEvent: boolean; sendLog: boolean } | undefined }> = {
  name: 'record',
  reaches: 'history',
  isAsked: ({ cloud }) => cloud?.sendEvent === true || cloud?.sendLog === true,
};
