import { Text } from '../text.ts';
import type { Action } from './action.ts';

export const showTextMembers = { showText: Text.optional() };

/** The device shows a text. */
export const showText: Action<{ display?: { showText?: string | undefined } | undefined }> = {
  name: 'show-text',
  reaches: 'device',
  isAsked: ({ display }) => display?.showText !== undefined,
  message: ({ display }, { event }) => ({
    topic: 'display',
    payload: { text: display?.showText ?? '', ts: event.ts },
  }),
};
