import { useQuery } from '../../api/cache.ts';
import { explainEvaluation, nameOfSense } from '../../api/devices.ts';
import type { Description, Sense } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { formatDuration, formatTime, formatValue, sayCondition } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import type { CurrentProfile, TabProps } from './tab.ts';

const everyMs = 5_000;

/** What each event that can fire now still lacks. */
export function WhyTab({ uuid, senses, purposes }: TabProps) {
  const query = useQuery(`why/${uuid}`, (signal) => explainEvaluation(uuid, signal), { everyMs });
  return (
    <Answered query={query}>
      {({ engine, evaluation }) => {
        if (engine === 'device') return <Empty icon="pulse" title={t('device.ownEngine')} />;
        if (evaluation === null || purposes === null)
          return (
            <Empty icon="pulse" title={t('device.noProfile')} hint={t('device.noProfileHint')} />
          );
        const { puId, events } = evaluation;
        if (events.length === 0) return <Empty icon="pulse" title={t('why.noEvents')} />;
        return (
          <ul class="why">
            {events.map((event) => (
              <li key={`${event.stId}:${event.evId}`}>
                <p class="event-title">{eventName(purposes, puId, event.stId, event.evId)}</p>
                <p class="event-why">{sayEventWhy(event).join(' ')}</p>
                <ul class="causes">
                  {event.causes.map((cause, place) => [
                    beginsGroup(event.causes, place) && <li class="cause">{t('why.or')}</li>,
                    <li key={place} class={cause.holds ? 'cause cause-holds' : 'cause'}>
                      {sayCauseWhy(cause, senses)}
                    </li>,
                  ])}
                </ul>
              </li>
            ))}
          </ul>
        );
      }}
    </Answered>
  );
}

function eventName({ purposes }: CurrentProfile, puId: number, stId: number, evId: number): string {
  const states = purposes.find((purpose) => purpose.puId === puId)?.states ?? [];
  const events = states.find((state) => state.stId === stId)?.events ?? [];
  return events.find((event) => event.evId === evId)?.name || t('event.unknown', { id: evId });
}

type EventWhy = Description['events'][number];
type CauseWhy = EventWhy['causes'][number];

/** Whether another group of causes begins there. */
const beginsGroup = (causes: readonly CauseWhy[], place: number): boolean =>
  place > 0 && causes[place]?.group !== causes[place - 1]?.group;

/** What a cause still lacks: "Temperature: 1 of 2, 1 more above 8 °C". */
function sayCauseWhy(cause: CauseWhy, senses: ReadonlyMap<string, Sense>): string {
  const sense = senses.get(cause.sId);
  const condition =
    cause.noneForMs === undefined ? sayCondition(cause.thresholds, cause.negate, sense) : '';
  return `${nameOfSense(cause.sId, sense)}: ${[
    saySilence(cause) ?? sayStatistic(cause) ?? sayProgress(cause, condition, sense),
    sayClock(cause),
  ]
    .filter((part) => part !== '')
    .join('; ')}.`;
}

function saySilence({ noneForMs, sinceTs, dueTs, holds }: CauseWhy): string | null {
  if (noneForMs === undefined) return null;
  const of = formatDuration(noneForMs);
  if (holds) return t('why.silentHolds', { time: formatDuration(now() - (sinceTs ?? now())) });
  if (dueTs === undefined) return t('why.waitsForSilence', { of });
  const time = formatDuration(noneForMs - (dueTs - now()));
  return t('why.silent', { time, of, left: formatDuration(dueTs - now()) });
}

/** Only while there is nothing to compare yet. */
function sayStatistic({ over, statistic, collectedMs = 0 }: CauseWhy): string | null {
  if (!over || statistic !== undefined) return null;
  const time = formatDuration(collectedMs);
  return t('why.collects', { time, of: formatDuration(over.ms / 2) });
}

function sayProgress(cause: CauseWhy, condition: string, sense: Sense | undefined): string {
  const { holds, forMs, sinceTs, dueTs, matched, needed, of, missing, seen, statistic } = cause;
  if (holds) return condition === '' ? t('why.holds') : t('why.holdsAs', { condition });
  const newest = statistic ?? (seen === undefined ? undefined : seen.val);
  if (newest === undefined) return t('why.noValue');
  const value = formatValue(newest, sense);
  if (forMs !== undefined && sinceTs !== undefined) {
    const time = formatDuration(now() - sinceTs);
    const run = t('why.runs', { condition, time, of: formatDuration(forMs) });
    return dueTs === undefined
      ? run
      : `${run}, ${t('why.due', { left: formatDuration(dueTs - now()) })}`;
  }
  if (needed > 1 && of > 0) return t('why.counts', { matched, needed, missing, condition, value });
  // After a firing, earlier measurements do not count.
  if (of === 0 && matched === 0) return t('why.next', { value, condition });
  return t('why.isNot', { value, condition });
}

/** What is wrong with the timestamps of its sense. */
function sayClock({ late, ahead }: CauseWhy): string {
  if (ahead) return t('why.ahead', { time: formatTime(ahead.newestTs) });
  return late ? t('why.late', { count: late.count, time: formatTime(late.newestTs) }) : '';
}

/** When an event fires, and whether people would then be notified. */
function sayEventWhy(event: EventWhy): string[] {
  const { causes } = event;
  if (causes.length === 0) return [t('why.never')];
  const holding = causes.filter(({ holds }) => holds).length;
  const fires =
    causes[0]?.group !== undefined
      ? t('why.anyOf')
      : causes.length === 1
        ? t('why.one')
        : t('why.all', { of: String(causes.length), holding: String(holding) });
  return [fires, sayTelling(event)].filter((part) => part !== '');
}

function sayTelling({ tells, rung, alarm = {} }: EventWhy): string {
  const { state, told, notNotified, snoozedUntilTs = 0, mutedUntilTs = 0 } = alarm;
  const isOpen = state !== undefined || rung;
  if (tells === 'nobody') return '';
  if (tells === 'silent-alarm') return t(isOpen ? 'why.isOpen' : 'why.silentAlarm');
  if (mutedUntilTs > now()) return t('why.muted', { time: formatTime(mutedUntilTs) });
  if (tells === 'notice') return t('why.notice');
  if (snoozedUntilTs > now()) return t('why.snoozed', { time: formatTime(snoozedUntilTs) });
  if (state === 'acknowledged') return t('why.acknowledged');
  if (!isOpen) return t('why.tells');
  if (state === undefined || told === 'told' || told === 'queued') return t('why.wasTold');
  return notNotified === undefined
    ? t('why.toldNobody')
    : t('why.toldNobodyAs', { reason: t(`alarms.notTold.${notNotified}`) });
}
