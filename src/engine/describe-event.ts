import { z } from 'zod';
import { NotNotified } from '../contract/not-notified.ts';
import type { EventExplanation } from './explain.ts';
import type { Tells } from './outcome.ts';
import { describeInstant } from './time-words.ts';

/** What is known of an event's alarm, and of what keeps it quiet; without members there is neither. Ms. */
export const AlarmStanding = z
  .object({
    state: z.enum(['open', 'acknowledged']).optional(),
    told: z.enum(['none', 'queued', 'told', 'withdrawn']).optional(),
    notNotified: NotNotified.optional(),
    snoozedUntilTs: z.int().optional(),
    mutedUntilTs: z.int().optional(),
  })
  .meta({ id: 'AlarmStanding' });
export type AlarmStanding = z.infer<typeof AlarmStanding>;

/** What an event still lacks, and whether people would be told if it fired now. */
export function describeEvent(
  event: EventExplanation,
  tells: Tells,
  nowTs: number,
  standing: AlarmStanding = {},
): string {
  const telling = describeTelling(tells, event.rung, nowTs, standing);
  return [describeCauses(event), telling].filter((part) => part !== '').join('; ');
}

function describeCauses({ causes }: EventExplanation): string {
  const [cause] = causes;
  if (!cause) return 'never fires: it has no causes';
  const holding = causes.filter(({ holds }) => holds).length;
  if (causes.length === 1) return cause.holds ? 'fires' : 'fires when its cause holds';
  return `fires when all causes hold, ${holding} of ${causes.length} do`;
}

function describeTelling(
  tells: Tells,
  isInEpisode: boolean,
  nowTs: number,
  { state, told, notNotified, snoozedUntilTs = 0, mutedUntilTs = 0 }: AlarmStanding,
): string {
  const isOpen = state !== undefined || isInEpisode;
  if (tells === 'nobody') return '';
  if (tells === 'silent-alarm')
    return isOpen ? 'its alarm is open' : 'opens an alarm, tells nobody';
  if (mutedUntilTs > nowTs)
    return `would ring, but the device is muted until ${describeInstant(mutedUntilTs)}`;
  if (tells === 'notice') return 'people are told each time';
  if (snoozedUntilTs > nowTs)
    return `would ring, but snoozed until ${describeInstant(snoozedUntilTs)}`;
  if (state === 'acknowledged') return 'its alarm is acknowledged: nobody is told again';
  if (!isOpen) return 'rings then';
  if (state === undefined || told === 'told' || told === 'queued')
    return 'its alarm is open, and people were told';
  const why = notNotified === undefined ? '' : ` (${notNotified})`;
  return `its alarm is open, and nobody was told${why}`;
}
