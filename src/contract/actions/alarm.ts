import { z } from 'zod';
import { duration, oneMinute } from '../integer.ts';
import type { Action } from './action.ts';

const sevenDays = { ms: 7 * 24 * 60 * 60_000, words: '7 days' };

/**
 * `alarm`: whether firings are kept as an alarm, where that is not decided by whom they notify. `keepMs`: how much
 * longer it stays open. `repeatMs`: people are notified of it again, so long after the last time.
 */
export const alarmMembers = {
  alarm: z.boolean().optional().meta({
    description: 'True: firings are kept as an alarm. False: people are told each time.',
  }),
  keepMs: duration({ ms: 0, words: '0 s' }, sevenDays).optional().meta({
    description: 'How much longer the alarm stays open, in ms.',
  }),
  repeatMs: duration(oneMinute).optional().meta({
    description: 'People are told again so long after the last time, in ms.',
  }),
};

/** A firing is kept as an alarm, also where nobody is notified of it. */
export const alarm: Action<{ alarm?: boolean | undefined }> = {
  name: 'alarm',
  reaches: 'alarms',
  isAsked: (actions) => actions.alarm === true,
};
