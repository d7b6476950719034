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
type Latest = readonly LatestView[] | undefined;

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
  const { noneForMs, negate, relative } = threshold;
  const over = statisticOf(threshold);
  const who = name ?? sId;
  if (typeof noneForMs === 'number')
    return t('alarms.silent', { name: who, time: formatDuration(noneForMs) });
  const condition = sayCondition(thresholds, negate === true, { unit: unit ?? undefined });
  if (condition === '' || relative === true) return '';
  if (!over) return `${who} ${condition}`;
  return t(`alarms.over.${over.stat}`, { name: who, time: formatDuration(over.ms), condition });
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

/** When it was over, by the measurements. Null: it still holds, a person or a profile closed it, or not recorded. */
export const overOf = ({ overTs, closedTs }: ListedAlarm): number | null => overTs ?? closedTs;

/** From when to when, and how long; or since when. */
export function sayTimes(alarm: ListedAlarm): string {
  const { overTs, closedTs, closedBy } = alarm;
  const beganTs = beganOf(alarm);
  const from = formatTime(beganTs);
  if (overTs !== null) {
    const time = formatDuration(overTs - beganTs);
    return t('alarms.lasted', { from, to: formatTime(overTs), time });
  }
  if (closedTs === null)
    return t('alarms.since', { time: from, ago: formatDuration(now() - beganTs) });
  const isByCondition = closedBy === 'cleared' || closedBy === 'left-state';
  return t(isByCondition ? 'alarms.endUnknown' : 'alarms.closedWhile', { from });
}

/** Whether a value is beyond a limit for which one of these alarms is open. A position has no limits. */
export function isBeyond(
  { sId, val }: { sId: string; val: unknown },
  alarms: readonly ListedAlarm[],
): boolean {
  if (typeof val !== 'number') return false;
  return alarms.some(({ conditions }) =>
    conditions.some((condition) => {
      const { isGt, isLt } = condition.thresholds;
      if (condition.sId !== sId || !isLimit(condition)) return false;
      return (typeof isGt === 'number' && val > isGt) || (typeof isLt === 'number' && val < isLt);
    }),
  );
}

/**
 * Why closing it hides something: "It is 13.2 °C, above 8 °C." Empty if what it was about is over. A value that is
 * back counts as over, also before the alarm ends.
 */
export function whyOpen(alarm: ListedAlarm, latest: Latest): string {
  const { conditions, values, overTs, endsTs } = alarm;
  if (overTs !== null || endsTs !== null) return '';
  for (const condition of conditions.filter(isLimit)) {
    const { isGt, isLt } = condition.thresholds;
    const value = values.find(({ sId }) => sId === condition.sId);
    if (!value) continue;
    const isBeyond = typeof isGt === 'number' ? value.val > isGt : value.val < Number(isLt);
    if (!isBeyond) continue;
    const text = formatValue(value.val, shownAs(value.sId, latest, condition));
    const limit = sayCondition(condition.thresholds, false, { unit: condition.unit ?? undefined });
    return t('alarms.itIs', { value: text, limit });
  }
  return conditions.some(isLimit) ? t('alarms.notOver') : t('alarms.holds');
}
