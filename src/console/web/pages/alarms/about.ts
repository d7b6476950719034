import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import {
  formatDuration,
  formatTime,
  formatValue,
  isPlain,
  statisticOf,
  sayCondition,
} from '../../text/format.ts';
import { t } from '../../text/t.ts';

type Condition = ListedAlarm['conditions'][number];
type Value = ListedAlarm['values'][number];
type Latest = readonly Pick<LatestView, 'sId' | 'name' | 'unit' | 'decimals'>[] | undefined;

/** What an alarm was about, in words: the condition, how far it went, and what it is now. */
type About = {
  condition: string;
  extreme: string;
  /** The same without its time. */
  peak: string;
  now: string;
};

/** `latest`: how the senses of its device are shown; a condition has its own name and unit, of when it opened. */
export function aboutOf(alarm: ListedAlarm, latest: Latest): About {
  const { conditions, extreme, closedTs, values } = alarm;
  const said = conditions.map((one) => sayOne(one)).filter((text) => text !== '');
  const [shown] = extreme;
  return {
    condition: said.join('; '),
    extreme: shown ? sayExtreme(shown, conditions, latest) : '',
    peak: shown ? sayPeak(shown, conditions, latest) : '',
    now: closedTs === null ? values.map((value) => sayValue(value, latest)).join(', ') : '',
  };
}

/** A name and what was compared: "Temperature above 8 °C". Empty if words cannot say it in a line. */
function sayOne({ sId, name, unit, thresholds, threshold }: Condition): string {
  const { noneForMs, forMs, negate, relative } = threshold;
  const over = statisticOf(threshold);
  const who = name ?? sId;
  if (typeof noneForMs === 'number')
    return t('alarms.silent', { name: who, time: formatDuration(noneForMs) });
  const condition = sayCondition(thresholds, negate === true, { unit: unit ?? undefined });
  if (condition === '' || relative === true) return '';
  const said = over
    ? t(`alarms.over.${over.stat}`, { name: who, time: formatDuration(over.ms), condition })
    : `${who} ${condition}`;
  if (typeof forMs !== 'number') return said;
  return t('alarms.heldFor', { condition: said, time: formatDuration(forMs) });
}

const isLimit = ({ threshold, thresholds: { isGt, isLt } }: Condition) =>
  isPlain(threshold) && (typeof isGt === 'number' || typeof isLt === 'number');

function sayExtreme(value: Value, conditions: readonly Condition[], latest: Latest): string {
  const peak = sayPeak(value, conditions, latest);
  return t('alarms.peakAt', { peak, time: formatTime(value.ts) });
}

function sayPeak({ sId, val }: Value, conditions: readonly Condition[], latest: Latest): string {
  const limit = conditions.find((one) => one.sId === sId && isLimit(one));
  const value = formatValue(val, shownAs(sId, latest, limit));
  return t(limit?.thresholds['isLt'] === undefined ? 'alarms.most' : 'alarms.least', { value });
}

const shownAs = (sId: string, latest: Latest, limit?: Condition) => {
  const sense = latest?.find((each) => each.sId === sId);
  return { unit: limit?.unit ?? sense?.unit, decimals: sense?.decimals };
};

function sayValue({ sId, val, lat, long }: Value, latest: Latest): string {
  const sense = latest?.find((each) => each.sId === sId);
  const isPosition = lat !== undefined && long !== undefined;
  return `${sense?.name ?? sId} ${formatValue(isPosition ? { lat, long } : val, sense)}`;
}

/** When what it was about began, by the measurements; by its firing, if that was not recorded. */
export const beganOf = ({ beganTs, sinceTs }: ListedAlarm): number => beganTs ?? sinceTs;

/** When it was over, by the measurements; if that is not known, when it was closed. Null: it is open. */
export const overOf = ({ overTs, closedTs }: ListedAlarm): number | null => overTs ?? closedTs;

/** In a row: for how long; of one that is closed since when, too, or that its end is not known. */
export function sayLasting(alarm: ListedAlarm): string {
  const { overTs, closedTs } = alarm;
  const began = beganOf(alarm);
  if (closedTs === null) return formatDuration((overTs ?? now()) - began);
  const from = formatTime(began);
  return `${from} · ${overTs === null ? sayUnknownEnd(alarm) : formatDuration(overTs - began)}`;
}

/** Why it is not known when what a closed alarm was about was over. */
export const sayUnknownEnd = (alarm: ListedAlarm): string =>
  t(isByCondition(alarm) ? 'alarms.noEnd' : 'alarms.closedEarly');

const isByCondition = ({ closedBy }: ListedAlarm) =>
  closedBy === 'cleared' || closedBy === 'left-state';

/** From when to when, and how long; or since when. */
export function sayTimes(alarm: ListedAlarm): string {
  const { overTs, closedTs } = alarm;
  const beganTs = beganOf(alarm);
  const from = formatTime(beganTs);
  if (overTs !== null) {
    const time = formatDuration(overTs - beganTs);
    return t('alarms.lasted', { from, to: formatTime(overTs), time });
  }
  if (closedTs === null)
    return t('alarms.since', { time: from, ago: formatDuration(now() - beganTs) });
  return t(isByCondition(alarm) ? 'alarms.endUnknown' : 'alarms.closedWhile', { from });
}

/** Whether a newest value is beyond a plain limit of its device's profile. */
export const isBeyond = ({ val, above, below }: LatestView): boolean =>
  typeof val === 'number' &&
  ((above !== undefined && val > above) || (below !== undefined && val < below));

/**
 * Why closing it hides something, by the newest values: "It is 13.2 °C, above 8 °C." Empty if what it was about is
 * over. A value that is back counts as over, also before the alarm ends.
 */
export function whyOpen(alarm: ListedAlarm, latest: Latest): string {
  return alarm.overTs !== null || alarm.endsTs !== null ? '' : sayHolding(alarm, latest).why;
}

/** Which value still holds it, and when that was measured. Both are empty where words cannot say it. */
export function sayHolding(
  { conditions, values }: Pick<ListedAlarm, 'conditions' | 'values'>,
  latest: Latest,
): { why: string; measured: string } {
  const limits = conditions.filter(isLimit);
  for (const condition of limits) {
    const { isGt, isLt } = condition.thresholds;
    const value = values.find(({ sId }) => sId === condition.sId);
    if (!value) continue;
    const isOut = typeof isGt === 'number' ? value.val > isGt : value.val < Number(isLt);
    if (!isOut) continue;
    const text = formatValue(value.val, shownAs(value.sId, latest, condition));
    const limit = sayCondition(condition.thresholds, false, { unit: condition.unit ?? undefined });
    const why = t('alarms.itIs', { value: text, limit });
    return { why, measured: t('alarms.measured', { time: formatTime(value.ts) }) };
  }
  const newest = values.map((value) => `${sayValue(value, latest)} (${formatTime(value.ts)})`);
  return {
    why: limits.length > 0 ? t('alarms.notOver') : t('alarms.holds'),
    measured: newest.length === 0 ? '' : t('alarms.newest', { values: newest.join(', ') }),
  };
}
