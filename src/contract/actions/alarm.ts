import { z } from 'zod';
import { integer } from '../integer.ts';
import type { Action } from './action.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/**
 * `alarm`: whether firings are kept as an alarm, where that is not decided by whom they notify. `keepMs`: how much
 * longer it stays open. `repeatMs`: people are notified of it again, so long after the last time.
 */
export const alarmMembers = {
  alarm: z.boolean().optional(),
  keepMs: integer(0, 7 * dayMs).optional(),
  repeatMs: integer(minuteMs, 31 * dayMs).optional(),
};

/** A firing is kept as an alarm, also where nobody is notified of it. */
export const alarm: Action<{ alarm?: boolean | undefined }> = {
  name: 'alarm',
  reaches: 'alarms',
  isAsked: (actions) => actions.alarm === true,
};
