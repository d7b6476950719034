import type { EventView, Sense } from '../../api/types.ts';
import { nameOf, placeAfter } from './chart/points.ts';
import { nameOfSense } from '../../parts/senses.ts';
import { formatDuration } from '../../text/duration.ts';
import { formatNumber, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { sayCondition } from './say-condition.ts';
import type { CurrentProfile } from './tab.ts';

type SenseEvent = Extract<EventView, { type: 'sense' }>;
/** What `why` has of each cause, as docs/specification.md says. */
type Why = {
  sId?: string;
  thresholds?: Record<string, unknown>;
  compared?: number;
  over?: { ms: number; stat: 'avg' | 'sum' | 'delta' };
  relative?: boolean;
  negate?: boolean;
  matched?: number;
  of?: number;
  needed?: number;
  heldMs?: number;
  silentMs?: number;
};

/** What an event is called in the profile that the device has now; of an earlier one its numbers. */
export function titleOf(event: EventView, profile: CurrentProfile | null): string {
  const { pId, puId, stId, evId } = event.cause.engine;
  const states = profile?.pId === pId ? statesOf(profile, puId) : [];
  if (event.type === 'device') {
    const place = placeAfter(event, profile);
    return t('device.moved', { state: nameOf(place, profile, (id) => id) });
  }
  const found = states.find((state) => state.stId === stId)?.events;
  const name = found?.find((each) => each.evId === evId)?.name;
  return name || t('event.unknown', { id: `${puId}:${stId}:${evId}` });
}

const statesOf = ({ purposes }: CurrentProfile, puId: number) =>
  purposes.find((purpose) => purpose.puId === puId)?.states ?? [];

/** Why it fired, a sentence a cause: "Temperature was 9.7 °C, above 8 °C; 2 of the last 2 agreed, 2 needed." */
export function sayEvent(event: EventView, senses: ReadonlyMap<string, Sense>): string[] {
  if (event.type === 'device') return [];
  const said = (event.why ?? event.cause.senses).map((cause) => sayCause(cause, event, senses));
  const { notified, notNotified } = event;
  if (notified !== false || notNotified === undefined) return said;
  return [...said, t(`alarms.notTold.${notNotified}`)];
}

function sayCause(cause: Why, event: SenseEvent, senses: ReadonlyMap<string, Sense>): string {
  const { sId = '', thresholds = {}, negate, matched, of, needed, heldMs, silentMs } = cause;
  const sense = senses.get(sId);
  const name = nameOfSense(sId, sense);
  if (silentMs !== undefined)
    return `${t('event.silent', { name, time: formatDuration(silentMs) })}.`;
  const condition = sayCondition(thresholds, negate, sense);
  // Of a place nothing is compared but whether it is inside: 1 or 0 would say nothing to a reader.
  const first = isPlace(thresholds)
    ? t('event.was', { name, value: condition })
    : [sayCompared(cause, event, sense), condition].filter((part) => part !== '').join(', ');
  if (heldMs !== undefined)
    return `${first}; ${t('event.held', { time: formatDuration(heldMs) })}.`;
  if (matched === undefined || of === undefined || needed === undefined || needed < 2)
    return `${first}.`;
  const agreed = t('event.agreed', {
    matched: formatNumber(matched),
    of: formatNumber(of),
    needed: formatNumber(needed),
  });
  return `${first}; ${agreed}.`;
}

const isPlace = ({ isInsideGeo }: Record<string, unknown>) => isInsideGeo !== undefined;

/** What was compared: a value, or what was made of values. */
function sayCompared(
  { sId = '', compared, over, relative }: Why,
  event: SenseEvent,
  sense: Sense | undefined,
): string {
  const measured = event.cause.senses.find((each) => each.sId === sId);
  const value = compared ?? measured?.val;
  const name = nameOfSense(sId, sense);
  if (value === undefined) return '';
  const what = { name, value: formatValue(value, sense) };
  if (over) return t(`event.over.${over.stat}`, { ...what, time: formatDuration(over.ms) });
  return relative ? t('event.differed', what) : t('event.was', what);
}
