import { z } from 'zod';
import { statisticOf } from './bins.ts';
import type { TimeMembers } from './compile-cause.ts';
import type { Tick } from './ticks.ts';
import type { CauseTime } from './time-evidence.ts';

/** Members of time, as in the purpose, and what has become of them. */
export const timeMembers = {
  forMs: z.int().optional(),
  noneForMs: z.int().optional(),
  maxAgeMs: z.int().optional(),
  over: z
    .object({ ms: z.int(), stat: z.enum(['avg', 'sum', 'delta']) })
    .meta({ id: 'OverTimeExplanation' })
    .optional(),
  /** When the run of `forMs` began, by its measurement, or the silence of `noneForMs`; absent where there is none. */
  sinceTs: z.int().optional(),
  /** When it comes to hold, if nothing happens before that. */
  dueTs: z.int().optional(),
  /** What `over` compares as of the newest measurement; absent before half of its time has passed: `collectedMs` has. */
  statistic: z.number().optional(),
  collectedMs: z.int().optional(),
};

const TimeExplanation = z.object(timeMembers);
type TimeExplanation = z.infer<typeof TimeExplanation>;

/** What members of time add to the explanation of a cause; `tick` is the one that it waits for. */
export function explainTime(
  { forMs, noneForMs, maxAgeMs, over }: TimeMembers,
  collected: CauseTime | null,
  tick: Tick | undefined,
): TimeExplanation {
  const sinceTs = collected?.run?.sinceT ?? collected?.silence?.sinceTs;
  return {
    ...(forMs === null ? {} : { forMs }),
    ...(noneForMs === null ? {} : { noneForMs }),
    ...(maxAgeMs === null ? {} : { maxAgeMs }),
    ...(over === null ? {} : { over, ...statisticAt(over, collected) }),
    ...(sinceTs === undefined ? {} : { sinceTs }),
    ...(tick ? { dueTs: tick.ts } : {}),
  };
}

/** As of the newest measurement that the cause has evaluated. */
function statisticAt(
  over: NonNullable<TimeMembers['over']>,
  collected: CauseTime | null,
): TimeExplanation {
  const { bins = null, lastT = null } = collected ?? {};
  if (!bins || lastT === null) return { collectedMs: 0 };
  const statistic = statisticOf(bins, over, lastT);
  return statistic === null ? { collectedMs: lastT - bins.sinceT } : { statistic };
}
