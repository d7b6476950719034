import type { Alarm } from '../alarm.ts';

/** What is known beside the alarm's row when its timer looks at it; ms. */
export type LookAt = {
  nowTs: number;
  ringMaxAgeMs: number;
  /** Nobody is told of its event until then; null: people are. */
  quietUntilTs: number | null;
  /** The newest `ts` of its senses; null: nothing is stored of them. */
  newestTs: number | null;
};

/** What the timer does. `wait`: it looks again at `nextTs`, if at all. */
export type Look =
  | { do: 'tell' }
  | { do: 'repeat' }
  | { do: 'wait'; nextTs: number | null; lookedTs?: number; isQuiet?: true };

/** What is due of an open alarm whose time has come. */
export function lookAt(alarm: Alarm, at: LookAt): Look {
  const { tells, acknowledgedTs, announcedTs, repeatMs, endsTs } = alarm;
  if (tells === 'silent-alarm' || acknowledgedTs !== null) return { do: 'wait', nextTs: null };
  // What it stands for is over. It closes then, or goes on with a firing.
  if (endsTs !== null) return { do: 'wait', nextTs: endsTs };
  if (announcedTs !== null && repeatMs === null) return { do: 'wait', nextTs: null };
  if (at.quietUntilTs !== null) return { do: 'wait', nextTs: at.quietUntilTs, isQuiet: true };
  if (announcedTs !== null) return { do: 'repeat' };
  return backlogOf(alarm, at) ?? { do: 'tell' };
}

/**
 * While the senses' newest times go forward faster than time does, a backlog is coming in: what it says last is
 * not known yet.
 */
function backlogOf({ waitsForFresh, lookedTs, nextTs }: Alarm, at: LookAt): Look | null {
  const { nowTs, ringMaxAgeMs, newestTs } = at;
  if (!waitsForFresh || newestTs === null) return null;
  const sinceMs = ringMaxAgeMs + Math.max(0, nowTs - (nextTs ?? nowTs));
  if (newestTs - (lookedTs ?? newestTs) <= 2 * sinceMs) return null;
  return { do: 'wait', nextTs: nowTs + ringMaxAgeMs, lookedTs: newestTs };
}
