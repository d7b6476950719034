import { useQuery } from '../../../api/cache.ts';
import { getProfile, listProfilesOf } from '../../../api/devices.ts';
import type { ListedAlarm, Purpose } from '../../../api/types.ts';
import { now } from '../../../app/now.ts';
import { formatTime, formatTyped, isPlain } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { beganOf, overOf } from '../../alarms/about.ts';
import type { CurrentProfile } from '../tab.ts';
import type { Span } from './points.ts';
import { type Range, readRange } from './series.ts';

/** What values were compared with, from `start` to `end`. `text`: its event, and what is compared. */
export type DrawnLimit = Span & { value: number; text: string; name: string; isAlarm: boolean };

/** How its numbers are written. */
type Sensed = { unit?: string | undefined; decimals?: number | undefined };

const always = Number.MAX_SAFE_INTEGER;

/** A profile that was in force from `start` to `end`. `purposes`: null if they are not kept. */
export type FormerProfile = Span & { pId: string; purposes: readonly Purpose[] | null };

/** How many former profiles of a range are read. */
const mostFormer = 20;
const none: readonly FormerProfile[] = [];

/** The profiles that were in force in a range before the current one. */
export function useFormer(uuid: string, { name, start, end }: Range): readonly FormerProfile[] {
  const key = name ?? `${start}-${end}`;
  const { data = none } = useQuery(`former/${uuid}/${key}`, async (signal) => {
    const spans = await listProfilesOf(uuid, signal, readRange(now()));
    const former = spans.flatMap(({ pId, fromTs, untilTs, purposes }) =>
      untilTs === null ? [] : [{ pId, start: fromTs, end: untilTs, isKept: purposes !== null }],
    );
    const kept = [...new Set(former.filter(({ isKept }) => isKept).map(({ pId }) => pId))];
    const said = await Promise.all(
      kept.slice(0, mostFormer).map(async (pId) => [pId, await getProfile(pId, signal)] as const),
    );
    const purposes = new Map<string, readonly Purpose[]>(said);
    return former.map(({ pId, start, end }) => {
      return { pId, start, end, purposes: purposes.get(pId) ?? null };
    });
  });
  return data;
}

type Known = {
  profile: CurrentProfile | null;
  alarms: readonly ListedAlarm[];
  former: readonly FormerProfile[];
};

/**
 * The limits that applied to values of a sense in a span, as far as that is known: those of the installed profile
 * since it has been current, or since its first alarm, which late values may have opened earlier; and those of former
 * profiles while they were in force. Of a profile that is not kept, alarms say what it was, between their times.
 */
export function limitsIn(
  span: Span,
  sense: Sensed & { sId: string },
  { profile, alarms, former }: Known,
): DrawnLimit[] {
  const own = alarms.filter(({ pId }) => pId === profile?.pId).map(beganOf);
  const start = Math.min(profile?.ts ?? always, ...own);
  const today = limitsOf(sense.sId, sense, profile).map((limit) => ({
    ...limit,
    start,
    end: always,
  }));
  const then = former.flatMap(({ start, end, purposes }) =>
    limitsOf(sense.sId, sense, purposes && { purposes }).map((limit) => ({ ...limit, start, end })),
  );
  const known = new Set(former.filter(({ purposes }) => purposes !== null).map(({ pId }) => pId));
  const others = alarms.filter(({ pId }) => !known.has(pId));
  const limits = [...today, ...then, ...limitsOfThen(sense, profile, others)];
  return limits
    .filter(({ start, end }) => start < span.end && end > span.start)
    .map((limit) => ({ ...limit, text: sayWhen(limit, span) }));
}

/** With the time from which, or until which, the limit is known to have applied, if that is within the span. */
function sayWhen({ text, start, end }: DrawnLimit, span: Span): string {
  const from = formatTime(start);
  if (end < span.end) return t('chart.limitThen', { limit: text, from, to: formatTime(end) });
  return start > span.start ? t('chart.limitSince', { limit: text, from }) : text;
}

/** Limits of profiles that are no longer kept: an alarm says what it was about. */
function limitsOfThen(
  { sId, unit, decimals }: Sensed & { sId: string },
  profile: CurrentProfile | null,
  alarms: readonly ListedAlarm[],
): DrawnLimit[] {
  const found = new Map<string, DrawnLimit>();
  for (const alarm of alarms) {
    if (alarm.pId === profile?.pId) continue;
    const end = Math.min(overOf(alarm) ?? always, profile?.ts ?? always);
    for (const condition of alarm.conditions) {
      if (condition.sId !== sId || !isPlain(condition.threshold)) continue;
      const name = alarm.eventName || t('chart.alarm');
      const shown = { unit: condition.unit ?? unit, decimals };
      for (const { value, text } of compared(condition.thresholds, name, shown)) {
        // The same profile held between two of its alarms.
        const key = `${alarm.pId}/${text}`;
        const known = found.get(key);
        found.set(key, {
          value,
          text,
          name,
          isAlarm: true,
          start: Math.min(known?.start ?? always, beganOf(alarm)),
          end: Math.max(known?.end ?? 0, end),
        });
      }
    }
  }
  return [...found.values()];
}

/** Sums and relative limits have no place on the axis of the values. */
function limitsOf(
  sId: string,
  sense: Sensed,
  profile: { purposes: readonly Purpose[] } | null,
): Omit<DrawnLimit, keyof Span>[] {
  const found = new Map<string, Omit<DrawnLimit, keyof Span>>();
  const events = (profile?.purposes ?? []).flatMap(({ states }) =>
    states.flatMap((state) => state.events),
  );
  for (const { name: own, evId, actions, causes, anyOf } of events) {
    for (const { sId: of, threshold, thresholds } of anyOf?.flat() ?? causes) {
      if (of !== sId || !isPlain(threshold)) continue;
      const name = own || t('event.unknown', { id: evId });
      const isAlarm = actions.alarm !== undefined;
      for (const { value, text } of compared(thresholds, name, sense))
        found.set(text, { value, text, name, isAlarm });
    }
  }
  return [...found.values()];
}

/** The numbers that a value must be above or below, in words. */
function compared(thresholds: Record<string, unknown>, name: string, { unit, decimals }: Sensed) {
  return (['isGt', 'isLt'] as const).flatMap((which) => {
    const value = thresholds[which];
    if (typeof value !== 'number') return [];
    const limit = formatTyped(value, { unit, decimals });
    const text = t(which === 'isGt' ? 'event.above' : 'event.below', { limit });
    return [{ value, text: `${name}: ${text}` }];
  });
}
