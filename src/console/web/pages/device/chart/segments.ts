import type { ListedAlarm } from '../../../api/types.ts';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { gapOf } from './columns.ts';
import type { Span } from './span.ts';
import type { Series } from './point.ts';
import type { Segment } from './points.ts';

const tones = 4;

/** When alarms were open. */
export function alarmSpans(alarms: readonly ListedAlarm[], span: Span): Segment[] {
  return alarms
    .map(({ sinceTs, closedTs, eventName }) => ({
      start: Math.max(sinceTs, span.start),
      end: Math.min(closedTs ?? span.end, span.end),
      text: eventName || t('chart.alarm'),
      tone: 0,
    }))
    .toSorted((one, other) => one.start - other.start);
}

/** A sense of few values as a strip: on and off, or a number of a list. */
export function valueSegments(series: Series, isSwitch: boolean): Segment[] {
  const { points, widthMs } = series;
  const gapMs = gapOf(series);
  const segments: Segment[] = [];
  for (const [place, { ts, min, max, last }] of points.entries()) {
    const nextTs = points[place + 1]?.ts ?? Number.POSITIVE_INFINITY;
    const end = nextTs - ts > gapMs ? ts + Math.max(widthMs, gapMs / 3) : nextTs;
    const isMixed = min !== max;
    const text = isMixed ? t('chart.mixed') : isSwitch ? sayOn(last) : formatNumber(last);
    const tone = isMixed ? tones : Math.abs(last) % tones;
    const before = segments.at(-1);
    if (before?.text === text && before.end >= ts) before.end = end;
    else segments.push({ start: ts, end, text, tone });
  }
  return segments;
}

const sayOn = (value: number) => t(value === 0 ? 'chart.off' : 'chart.on');

/** So narrow parts are not told apart. */
const leastPart = 0.002;

/** What of it lies in the span; parts that are too narrow to be seen become one. */
export function thin(segments: readonly Segment[], { start, end }: Span): Segment[] {
  const leastMs = (end - start) * leastPart;
  const shown: Segment[] = [];
  for (const segment of segments) {
    if (segment.end < start || segment.start > end) continue;
    const part = {
      ...segment,
      start: Math.max(segment.start, start),
      end: Math.min(segment.end, end),
    };
    const last = shown.at(-1);
    const isNarrow = (each: Span) => each.end - each.start < leastMs;
    if (last && isNarrow(part) && isNarrow(last) && part.start - last.end < leastMs) {
      last.end = part.end;
      if (last.text !== part.text) Object.assign(last, { text: t('chart.mixed'), tone: tones });
    } else shown.push(part);
  }
  return shown;
}
