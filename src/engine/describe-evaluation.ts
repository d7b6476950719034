import { z } from 'zod';
import { findEvent } from './compile.ts';
import type { Profile } from './compile.ts';
import { describeCause } from './describe-cause.ts';
import { AlarmStanding, describeEvent } from './describe-event.ts';
import { CauseExplanation, EventExplanation, Explanation } from './explain.ts';
import { describeInstant } from './time-words.ts';

/** Measurements of a sense that came too late, since the last that did not: how many, and what they are older than. */
export const LateSense = z.object({ count: z.int(), newestTs: z.int() }).meta({ id: 'LateSense' });
export type LateSense = z.infer<typeof LateSense>;

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
        CauseExplanation.extend({ text, late: LateSense.optional() }).meta({
          id: 'CauseExplanation',
        }),
      ),
    }).meta({ id: 'EventExplanation' }),
  ),
}).meta({ id: 'Explanation' });
export type Description = z.infer<typeof Description>;

/** What stands outside the engine; absent where it is not known. */
export type Around = {
  nowTs: number;
  /** By "puId/stId/evId". */
  alarms?: ReadonlyMap<string, AlarmStanding> | undefined;
  /** Until then all events of the device are quiet. */
  mutedUntilTs?: number | undefined;
  /** By sense. */
  late?: ReadonlyMap<string, LateSense> | undefined;
};

/** Puts an explanation into words: what each cause waits for, and whether people would be told. */
export function describeEvaluation(
  profile: Profile,
  { events, ...rest }: Explanation,
  { nowTs, alarms, mutedUntilTs, late }: Around,
): Description {
  const { puId } = rest;
  return {
    ...rest,
    events: events.map((event) => {
      const { stId, evId } = event;
      const tells = findEvent(profile, { puId, stId }, evId)?.tells ?? 'nobody';
      const known = alarms?.get(`${puId}/${stId}/${evId}`);
      const alarm = mutedUntilTs === undefined ? known : { ...known, mutedUntilTs };
      const causes = event.causes.map((cause) => describeWithLate(cause, nowTs, late));
      const words = describeEvent(event, tells, nowTs, alarm);
      return { ...event, text: words, tells, ...(alarm && { alarm }), causes };
    }),
  };
}

function describeWithLate(
  cause: CauseExplanation,
  nowTs: number,
  senses: Around['late'],
): Description['events'][number]['causes'][number] {
  const words = describeCause(cause, nowTs);
  const late = senses?.get(cause.sId);
  if (!late || late.count === 0) return { ...cause, text: words };
  const newest = `older than the newest, of ${describeInstant(late.newestTs)}`;
  const came =
    late.count === 1
      ? `the last one came too late: it is ${newest}`
      : `the last ${late.count} came too late: they are ${newest}`;
  return { ...cause, text: `${words}; ${came}`, late };
}
