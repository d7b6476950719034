import type { EventView, Sense } from '../../api/types.ts';
import { nameOfSense } from '../../parts/senses.ts';
import { formatNumber, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import type { CurrentProfile } from './tab-props.ts';

type SenseEvent = Extract<EventView, { type: 'sense' }>;
/** What `why` has of each cause, as docs/specification.md says. */
type Why = {
  sId?: string;
  thresholds?: Record<string, unknown>;
  compared?: number;
  negate?: boolean;
  matched?: number;
  of?: number;
  needed?: number;
};

/** What an event is called in the profile that the device has now; of an earlier one its numbers. */
export function titleOf(event: EventView, profile: CurrentProfile | null): string {
  const { pId, puId, stId, evId } = event.cause.engine;
  const states = profile?.pId === pId ? statesOf(profile, puId) : [];
  if (event.type === 'device') {
    const state = states.find(({ stId }) => stId === event.newValue)?.name;
    return t('device.moved', { state: state ?? `${puId}:${event.newValue}` });
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
  return (event.why ?? event.cause.senses).map((cause) => sayCause(cause, event, senses));
}

function sayCause(
  { sId = '', thresholds = {}, compared, negate, matched, of, needed }: Why,
  event: SenseEvent,
  senses: ReadonlyMap<string, Sense>,
): string {
  const sense = senses.get(sId);
  const measured = event.cause.senses.find((each) => each.sId === sId);
  const value = compared ?? measured?.val;
  const parts: string[] = [];
  if (value !== undefined)
    parts.push(t('event.was', { name: nameOfSense(sId, sense), value: formatValue(value, sense) }));
  const condition = sayThresholds(thresholds, sense);
  if (condition !== '') parts.push(negate ? t('event.not', { condition }) : condition);
  const first = parts.join(', ');
  if (matched === undefined || of === undefined || needed === undefined || needed < 2)
    return `${first}.`;
  const agreed = t('event.agreed', {
    matched: formatNumber(matched),
    of: formatNumber(of),
    needed: formatNumber(needed),
  });
  return `${first}; ${agreed}.`;
}

function sayThresholds(thresholds: Record<string, unknown>, sense: Sense | undefined): string {
  const shown = (value: unknown) =>
    typeof value === 'number' ? formatValue(value, { unit: sense?.unit }) : '';
  const list = (value: unknown) => (Array.isArray(value) ? value.map(shown).join(', ') : '');
  const { isGt, isLt, isOneOf, isNotIn, isInsideGeo } = thresholds;
  const said = [
    isGt === undefined ? '' : t('event.above', { limit: shown(isGt) }),
    isLt === undefined ? '' : t('event.below', { limit: shown(isLt) }),
    isOneOf === undefined ? '' : t('event.oneOf', { limit: list(isOneOf) }),
    isNotIn === undefined ? '' : t('event.notIn', { limit: list(isNotIn) }),
    isInsideGeo === undefined ? '' : t('event.inside'),
  ];
  return said.filter((each) => each !== '').join(', ');
}
