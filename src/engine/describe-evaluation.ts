import { z } from 'zod';
import { findEvent } from './compile.ts';
import type { Profile } from './compile.ts';
import { describeCause } from './describe-cause.ts';
import { AlarmStanding, describeEvent } from './describe-event.ts';
import { EventExplanation, Explanation } from './explain.ts';
import { CauseExplanation } from './explain-cause.ts';
import { describeInstant } from './time-words.ts';

/** Measurements of a sense that came too late, since the last that did not: how many, and what they are older than. */
const LateSense = z.object({ count: z.int(), newestTs: z.int() }).meta({ id: 'LateSense' });
type LateSense = z.infer<typeof LateSense>;

/** A sense whose newest measurement has a time that had not come yet when it arrived. */
const AheadSense = z.object({ newestTs: z.int() }).meta({ id: 'AheadSense' });
type AheadSense = z.infer<typeof AheadSense>;

const text = z.string().meta({ description: 'The same in words.' });

/** An explanation with words beside the numbers. */
export const Description = Explanation.extend({
  events: z.array(
    EventExplanation.extend({
      text,
      tells: z.enum(['nobody', 'notice', 'alarm', 'silent-alarm']).meta({
        description: 'Whom a firing concerns.',
      }),
      alarm: AlarmStanding.optional(),
      causes: z.array(
        CauseExplanation.extend({
          text,
          late: LateSense.optional(),
          ahead: AheadSense.optional(),
        }).meta({ id: 'CauseExplanation' }),
      ),
    }).meta({ id: 'EventExplanation' }),
  ),
  clockAheadTs: z.int().optional().meta({
    description: 'When the device was last told that a time of its measurements had not come yet.',
  }),
  clockBackTs: z.int().optional().meta({
    description: 'When it was last told that its clock was set back.',
  }),
}).meta({ id: 'Explanation' });
export type Description = z.infer<typeof Description>;

/** What stands outside the engine; absent where it is not known. */
export type AroundEvaluation = {
  nowTs: number;
  /** By "puId/stId/evId". */
  alarms?: ReadonlyMap<string, AlarmStanding> | undefined;
  /** Until then all events of the device are quiet. */
  mutedUntilTs?: number | undefined;
  /** By sense. */
  late?: ReadonlyMap<string, LateSense> | undefined;
  ahead?: ReadonlyMap<string, AheadSense> | undefined;
  /** When the device was last told that its clock is ahead, or was set back (ms). */
  clockAheadTs?: number | undefined;
  clockBackTs?: number | undefined;
};

/** Puts an explanation into words: what each cause waits for, and whether people would be told. */
export function describeEvaluation(
  profile: Profile,
  { events, ...rest }: Explanation,
  around: AroundEvaluation,
): Description {
  const { nowTs, alarms, mutedUntilTs, clockAheadTs, clockBackTs } = around;
  const { puId } = rest;
  return {
    ...rest,
    ...(clockAheadTs === undefined ? {} : { clockAheadTs }),
    ...(clockBackTs === undefined ? {} : { clockBackTs }),
    events: events.map((event) => {
      const { stId, evId } = event;
      const tells = findEvent(profile, { puId, stId }, evId)?.tells ?? 'nobody';
      const known = alarms?.get(`${puId}/${stId}/${evId}`);
      const alarm = mutedUntilTs === undefined ? known : { ...known, mutedUntilTs };
      const causes = event.causes.map((cause) => describeWithClock(cause, around));
      const words = describeEvent(event, tells, nowTs, alarm);
      return { ...event, text: words, tells, ...(alarm && { alarm }), causes };
    }),
  };
}

/** What is wrong with the times of its sense comes behind what the cause waits for. */
function describeWithClock(
  cause: CauseExplanation,
  { nowTs, late: lateSenses, ahead: aheadSenses }: AroundEvaluation,
): Description['events'][number]['causes'][number] {
  const late = lateSenses?.get(cause.sId);
  const isLate = late !== undefined && late.count > 0;
  const ahead = aheadSenses?.get(cause.sId);
  const words = [
    describeCause(cause, nowTs),
    ...(isLate ? [describeLate(late)] : []),
    ...(ahead ? [`its clock is ahead: the newest is of ${describeInstant(ahead.newestTs)}`] : []),
  ];
  return { ...cause, text: words.join('; '), ...(isLate && { late }), ...(ahead && { ahead }) };
}

function describeLate({ count, newestTs }: LateSense): string {
  const newest = `older than the newest, of ${describeInstant(newestTs)}`;
  return count === 1
    ? `the last one came too late: it is ${newest}`
    : `the last ${count} came too late: they are ${newest}`;
}
