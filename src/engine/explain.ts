import { z } from 'zod';
import { NotNotified } from '../contract/event.ts';
import { Thresholds } from '../contract/purpose.ts';
import { lastOf, OverStat, Position } from '../contract/values.ts';
import { statisticOf } from './arithmetic.ts';
import {
  type CompiledCause,
  findEvent,
  type LiveEvent,
  type Profile,
  type Tells,
  type TimeMembers,
} from './compile.ts';
import { comparedOf, senseOf } from './fire.ts';
import type { LastSeen, Listening } from './last-seen.ts';
import type { Agreed, CauseEvidence, CauseTime, Runtime } from './runtime.ts';
import { holdsInTime, type KnownListening, type Tick, ticksOf } from './timed.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Time members, as in the purpose, and their progress. */
const timeMembers = {
  forMs: z.int().optional(),
  noneForMs: z.int().optional(),
  maxAgeMs: z.int().optional(),
  over: z.object({ ms: z.int(), stat: OverStat }).meta({ id: 'OverTimeExplanation' }).optional(),
  /** When the run of `forMs` began, by its measurement, or the silence of `noneForMs`; absent if there is none. */
  sinceTs: z.int().optional(),
  /** When it will hold if nothing happens before. */
  dueTs: z.int().optional(),
  /** What `over` compares at the newest measurement; until half its time has passed, `collectedMs` instead. */
  statistic: z.number().optional(),
  collectedMs: z.int().optional(),
};

const TimeExplanation = z.object(timeMembers);
type TimeExplanation = z.infer<typeof TimeExplanation>;

/** What time members add to a cause's explanation. `tick`: the one the cause waits for. */
function explainTime(
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

/** What a cause of a live event has collected, and what it still lacks. */
const CauseExplanation = z.object({
  sId: z.string(),
  orderId: z.int(),
  group: z.int().optional().meta({
    description:
      'With `anyOf`: the number of its group, from 0. All causes of one group must hold.',
  }),
  thresholds: Thresholds,
  negate: z.boolean(),
  relative: z.boolean(),
  decimalAcc: z.int().optional(),
  /** Relative causes compare with this value. Absent before the first measurement. */
  baseline: z.number().optional(),
  /** How many of the last `of` measurements agreed. `windowLength`: the most that are considered. */
  matched: z.int(),
  of: z.int(),
  windowLength: z.int(),
  needed: z.int(),
  missing: z.int(),
  holds: z.boolean(),
  /** The newest measurement in the window that agreed. */
  agreed: z
    .object({
      val: z.number(),
      ts: z.int(),
      compared: z.number().optional(),
      lat: z.number().optional(),
      long: z.number().optional(),
    })
    .meta({ id: 'AgreedMeasurement' })
    .optional(),
  ...timeMembers,
  /** The sense's newest measurement. Older ones and exact repetitions are not evaluated. */
  seen: z
    .object({ val: z.union([z.number(), Position]), ts: z.int() })
    .meta({ id: 'SeenMeasurement' })
    .optional(),
});
type CauseExplanation = z.infer<typeof CauseExplanation>;

/** Without the time members (`explainTime`). */
function explainCause(
  cause: CompiledCause,
  collected: CauseEvidence | null,
  time: CauseTime | null,
  seen: LastSeen,
): CauseExplanation {
  const { sId, orderId, thresholds, negate, relative, decimalAcc, needed, windowLength } = cause;
  const { matched = 0, of = 0 } = collected ?? {};
  const newest = Object.hasOwn(seen, sId) ? seen[sId] : undefined;
  const val = lastOf(newest);
  return {
    sId,
    orderId,
    thresholds,
    negate,
    relative,
    matched,
    of,
    windowLength,
    needed,
    // A silence does not count measurements.
    missing: typeof cause.time?.noneForMs === 'number' ? 0 : Math.max(0, needed - matched),
    holds: holdsInTime(cause, collected, time),
    ...(decimalAcc === null ? {} : { decimalAcc }),
    ...(collected?.baseline === undefined ? {} : { baseline: collected.baseline }),
    ...(collected?.agreed ? { agreed: agreedOf(cause, collected, collected.agreed, time) } : {}),
    ...(newest && val !== undefined ? { seen: { val, ts: newest.ts } } : {}),
  };
}

function agreedOf(
  cause: CompiledCause,
  collected: CauseEvidence,
  agreed: Agreed,
  time: CauseTime | null,
) {
  const { sId: _sId, ...sense } = senseOf(cause, agreed);
  const compared = time?.compared ?? comparedOf(cause, collected);
  return compared === undefined ? sense : { ...sense, compared };
}

/** A live event. `rung`: it notified people, and does not again until a cause disagrees or its state is entered. */
const EventExplanation = z.object({
  stId: z.int(),
  evId: z.int(),
  name: z.string(),
  isGlobal: z.boolean(),
  rung: z.boolean(),
  causes: z.array(CauseExplanation),
});
type EventExplanation = z.infer<typeof EventExplanation>;

/** Where a device is in its profile, and how far each live event is from firing. */
const Explanation = z.object({
  pId: z.string(),
  puId: z.int(),
  stId: z.int(),
  events: z.array(EventExplanation),
});
type Explanation = z.infer<typeof Explanation>;

/** The time of the request, in ms, and when the device's connector was listening. */
export type AskedAt = { nowTs: WallMs; listening?: Listening | undefined };

/**
 * Explains what the causes of each live event have and lack, in the order in which events are tried. Without the last
 * argument, a listening gap that still lasts counts as over.
 */
export function explain(
  profile: Profile,
  runtime: Runtime,
  seen: LastSeen,
  { nowTs, listening = { gaps: [] } }: AskedAt = { nowTs: -Infinity },
): Explanation {
  const { puId, stId } = runtime;
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.events ?? [];
  const global = purpose?.globalEvents.filter((event) => event.stId !== stId) ?? [];
  const known = { listening, nowTs };
  const events = [...own, ...global].map((event) => explainEvent(event, runtime, seen, known));
  return { pId: profile.pId, puId, stId, events };
}

function explainEvent(
  event: LiveEvent,
  runtime: Runtime,
  seen: LastSeen,
  known: KnownListening,
): EventExplanation {
  const { stId, evId, name, isGlobal } = event;
  const evidence = (isGlobal ? runtime.global : runtime.local)[event.index] ?? null;
  const ticks = event.isTimed ? ticksOf(event, evidence, known) : [];
  const causes = event.causes.map((cause, index) => {
    const time = evidence?.time?.causes[index] ?? null;
    const tick = ticks.find((it) => it.index === index);
    return {
      ...explainCause(cause, evidence?.causes[index] ?? null, time, seen),
      ...(event.groups && { group: cause.group }),
      ...(cause.time && explainTime(cause.time, time, tick)),
    };
  });
  return { stId, evId, name, isGlobal, rung: evidence !== null && evidence.episode !== 0, causes };
}

/** A cause's progress in words: "agrees for 3 of 10 minutes, holds in 6 min 40 s". */
function describeCause(cause: CauseExplanation, nowTs: WallMs): string {
  if (cause.noneForMs !== undefined) return describeSilence(cause, cause.noneForMs, nowTs);
  const statistic = describeStatistic(cause);
  if (statistic !== null && cause.statistic === undefined) return statistic;
  const progress =
    cause.forMs === undefined ? describeCount(cause) : describeRun(cause, cause.forMs, nowTs);
  return statistic === null ? progress : `${statistic}: ${progress}`;
}

function describeSilence(cause: CauseExplanation, ofMs: number, nowTs: WallMs): string {
  const { sinceTs = nowTs, dueTs, holds } = cause;
  if (holds) return `silent for ${describeDuration(Math.max(ofMs, nowTs - sinceTs))}, holds`;
  if (dueTs === undefined) return `waits for ${describeDuration(ofMs)} of silence`;
  // Not counted from `sinceTs`, because only time in which the service listened counts.
  const done = describeProgress(ofMs - (dueTs - nowTs), ofMs);
  return `silent for ${done}, ${describeDue(dueTs, nowTs)}`;
}

function describeRun(cause: CauseExplanation, ofMs: number, nowTs: WallMs): string {
  const { sinceTs, dueTs, holds, missing } = cause;
  if (holds) return `agreed for ${describeDuration(ofMs)}, holds`;
  // It disagreed, or the event fired: both end a run.
  if (sinceTs === undefined)
    return cause.seen ? 'begins with the next measurement that agrees' : 'no measurement yet';
  const done = `agrees for ${describeProgress(nowTs - sinceTs, ofMs)}`;
  if (dueTs === undefined) return missing > 0 ? `${done}, ${missingOf(missing)}` : done;
  return `${done}, ${describeDue(dueTs, nowTs)}`;
}

function describeDue(dueTs: number, nowTs: WallMs): string {
  const leftMs = dueTs - nowTs;
  return leftMs < 1_000 ? 'holds any moment now' : `holds in ${describeDuration(leftMs)}`;
}

/** The number that `over` compares, or how long until there is one; null without `over`. */
function describeStatistic({ over, statistic, collectedMs = 0 }: CauseExplanation): string | null {
  if (!over) return null;
  const what = `${nouns[over.stat]} over ${describeDuration(over.ms)}`;
  if (statistic !== undefined) return `${what} ${statistic}`;
  return `${what} is compared after half that time: ${describeProgress(collectedMs, over.ms / 2)}`;
}

const nouns: Record<OverStat, string> = {
  avg: 'average',
  sum: 'sum',
  delta: 'change',
  min: 'minimum',
  max: 'maximum',
  stddev: 'standard deviation',
};

function describeCount(cause: CauseExplanation): string {
  const { matched, of, needed, missing, holds } = cause;
  if (holds) return of <= 1 ? 'holds' : `${matched} of the last ${of} agree, holds`;
  if (needed === 1 || of === 0) return describeNone(cause);
  return `${matched} of ${needed} measurements agree, ${missingOf(missing)}`;
}

/** What was measured before a firing or an entry does not count. */
function describeNone({ seen, of }: CauseExplanation): string {
  if (of > 0) return 'does not agree';
  return seen === undefined ? 'no measurement yet' : 'waits for the next measurement';
}

const missingOf = (missing: number) => (missing === 1 ? '1 is missing' : `${missing} are missing`);

/** Units of time, longest first. */
const units = [
  { ms: 86_400_000, short: 'd', word: 'days' },
  { ms: 3_600_000, short: 'h', word: 'hours' },
  { ms: 60_000, short: 'min', word: 'minutes' },
  { ms: 1_000, short: 's', word: 'seconds' },
] as const;

/** A duration in at most two units: "4 min 10 s", "2 d 3 h", "0 s". Omits milliseconds. */
export function describeDuration(ms: number): string {
  let rest = Math.max(0, ms);
  const parts: string[] = [];
  for (const unit of units) {
    const count = Math.floor(rest / unit.ms);
    rest -= count * unit.ms;
    if (count > 0) parts.push(`${count} ${unit.short}`);
    // Only adjacent units are combined: "1 h 5 s" has more detail than anybody needs.
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}

// With fewer of a unit, progress would be too coarse: 180 minutes instead of 3 hours.
const fewest = 5;

/** How much of a duration has passed, in one unit: "3 of 10 minutes". Counts only whole units. */
function describeProgress(doneMs: number, ofMs: number): string {
  const fits = ({ ms }: { ms: number }) => ofMs >= fewest * ms && ofMs % ms === 0;
  const { ms, word } = units.find(fits) ?? units[3];
  const done = Math.floor(Math.min(Math.max(0, doneMs), ofMs) / ms);
  return `${done} of ${Math.floor(ofMs / ms)} ${word}`;
}

/** What is known of an event's alarm, and of what keeps it from notifying. Times in ms. */
const AlarmStanding = z
  .object({
    state: z.enum(['open', 'acknowledged']).optional(),
    told: z.enum(['none', 'queued', 'told', 'withdrawn']).optional(),
    notNotified: NotNotified.optional(),
    snoozedUntilTs: z.int().optional(),
    mutedUntilTs: z.int().optional(),
  })
  .meta({ id: 'AlarmStanding' });
type AlarmStanding = z.infer<typeof AlarmStanding>;

/** What an event still lacks, and whether it would notify people if it fired now. */
function describeEvent(
  event: EventExplanation,
  tells: Tells,
  nowTs: WallMs,
  standing: AlarmStanding = {},
): string {
  const telling = describeTelling(tells, event.rung, nowTs, standing);
  return [describeCauses(event), telling].filter((part) => part !== '').join('; ');
}

function describeCauses({ causes }: EventExplanation): string {
  const [cause] = causes;
  if (!cause) return 'never fires: it has no causes';
  const holding = causes.filter(({ holds }) => holds).length;
  if (cause.group !== undefined) {
    const groups = [...Map.groupBy(causes, ({ group }) => group).values()];
    const told = groups.map(
      (alike) => `${alike.filter(({ holds }) => holds).length} of ${alike.length}`,
    );
    return `fires when all causes of one group hold, ${told.join(' or ')} do`;
  }
  if (causes.length === 1) return cause.holds ? 'fires' : 'fires when its cause holds';
  return `fires when all causes hold, ${holding} of ${causes.length} do`;
}

function describeTelling(
  tells: Tells,
  isInEpisode: boolean,
  nowTs: WallMs,
  { state, told, notNotified, snoozedUntilTs = 0, mutedUntilTs = 0 }: AlarmStanding,
): string {
  const isOpen = state !== undefined || isInEpisode;
  if (tells === 'nobody') return '';
  if (tells === 'silent-alarm')
    return isOpen ? 'its alarm is open' : 'opens an alarm, notifies nobody';
  if (mutedUntilTs > nowTs)
    return `would notify people, but the device is muted until ${describeInstant(mutedUntilTs)}`;
  if (tells === 'notice') return 'people are notified each time';
  if (snoozedUntilTs > nowTs)
    return `would notify people, but it is snoozed until ${describeInstant(snoozedUntilTs)}`;
  if (state === 'acknowledged') return 'its alarm is acknowledged: nobody is notified again';
  if (!isOpen) return 'people are notified then';
  if (state === undefined || told === 'told' || told === 'queued')
    return 'its alarm is open, and people were notified';
  const why = notNotified === undefined ? '' : ` (${notNotified})`;
  return `its alarm is open, but nobody was notified${why}`;
}

/** How many measurements of a sense came too late in a row, and the time of the newest value, which they precede. */
const LateSense = z.object({ count: z.int(), newestTs: z.int() }).meta({ id: 'LateSense' });
type LateSense = z.infer<typeof LateSense>;

/** A sense whose newest measurement is dated later than its arrival. */
const AheadSense = z.object({ newestTs: z.int() }).meta({ id: 'AheadSense' });
type AheadSense = z.infer<typeof AheadSense>;

const text = z.string().meta({ description: 'The same in words.' });

/** An explanation with words beside the numbers. */
export const Description = Explanation.extend({
  events: z.array(
    EventExplanation.extend({
      text,
      tells: z.enum(['nobody', 'notice', 'alarm', 'silent-alarm']).meta({
        description: 'Who is notified of a firing.',
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
    description:
      'When the device was last told that the time of one of its measurements is in the future.',
  }),
  clockBackTs: z.int().optional().meta({
    description: 'When it was last told that its clock was set back.',
  }),
}).meta({ id: 'Explanation' });
export type Description = z.infer<typeof Description>;

/** What the engine does not know; absent members are unknown. */
export type EvaluationContext = {
  nowTs: WallMs;
  /** By "puId/stId/evId". */
  alarms?: ReadonlyMap<string, AlarmStanding> | undefined;
  /** All events of the device are muted until then. */
  mutedUntilTs?: number | undefined;
  /** By sense. */
  late?: ReadonlyMap<string, LateSense> | undefined;
  ahead?: ReadonlyMap<string, AheadSense> | undefined;
  /** When the device was last told that its clock is ahead, or was set back (ms). */
  clockAheadTs?: number | undefined;
  clockBackTs?: number | undefined;
};

/** Puts an explanation into words: what each cause waits for, and whether people would be notified. */
export function describeEvaluation(
  profile: Profile,
  { events, ...rest }: Explanation,
  context: EvaluationContext,
): Description {
  const { nowTs, alarms, mutedUntilTs, clockAheadTs, clockBackTs } = context;
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
      const causes = event.causes.map((cause) => describeWithClock(cause, context));
      const words = describeEvent(event, tells, nowTs, alarm);
      return { ...event, text: words, tells, ...(alarm && { alarm }), causes };
    }),
  };
}

/** Adds what is wrong with the times of the cause's sense after what the cause waits for. */
function describeWithClock(
  cause: CauseExplanation,
  { nowTs, late: lateSenses, ahead: aheadSenses }: EvaluationContext,
): Description['events'][number]['causes'][number] {
  const late = lateSenses?.get(cause.sId);
  const isLate = late !== undefined && late.count > 0;
  const ahead = aheadSenses?.get(cause.sId);
  const words = [
    describeCause(cause, nowTs),
    ...(isLate ? [describeLate(late)] : []),
    ...(ahead
      ? [`its clock is ahead: its newest value is dated ${describeInstant(ahead.newestTs)}`]
      : []),
  ];
  return { ...cause, text: words.join('; '), ...(isLate && { late }), ...(ahead && { ahead }) };
}

function describeLate({ count, newestTs }: LateSense): string {
  const newest = `older than the newest value, dated ${describeInstant(newestTs)}`;
  return count === 1
    ? `the last one came too late: it is ${newest}`
    : `the last ${count} came too late: they are ${newest}`;
}

const format = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'UTC',
  dateStyle: 'short',
  timeStyle: 'medium',
});

/** "2026-11-23 12:00:00 UTC": in UTC, because programs read it in every time zone. */
const describeInstant = (ts: number): string => `${format.format(ts)} UTC`;
