import { useMemo } from 'preact/hooks';
import type { Sense } from '../../../api/types.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';
import type { Happened } from './happened.ts';
import { Marks } from './happened.tsx';
import type { Span } from './span.ts';
import { alarmSpans } from './segments.ts';
import { statesOf } from './points.ts';
import { Strip } from './strip.tsx';

type LanesProps = {
  happened: Happened;
  span: Span;
  senses: ReadonlyMap<string, Sense>;
  profile: CurrentProfile | null;
};

/** States, alarms and events on the time of the charts above. */
export function Lanes({ happened, span, senses, profile }: LanesProps) {
  const { events, isCut, alarms } = happened;
  const states = useMemo(
    () => statesOf(happened, span, profile, (id) => t('chart.state', { id })),
    [happened, profile, span.start, span.end],
  );
  const rung = alarmSpans(alarms, span);
  const isNamed = states.length > 1 || (profile?.purposes[0]?.states.length ?? 0) > 1;
  if (!isNamed && rung.length === 0 && events.length === 0) return null;
  return (
    <div class="lanes">
      {states.length > 0 && isNamed && (
        <Strip label={t('chart.states')} segments={states} span={span} look="state" />
      )}
      {rung.length > 0 && (
        <Strip label={t('chart.alarms')} segments={rung} span={span} look="alarm" />
      )}
      {events.length > 0 && <Marks {...{ events, isCut, span, senses, profile }} />}
    </div>
  );
}
