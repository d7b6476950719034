import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { nameOfSense } from '../../api/devices.ts';
import { listEvents } from '../../api/events.ts';
import type { EventView, OverStat, Sense } from '../../api/types.ts';
import { queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import {
  formatDuration,
  formatFullTime,
  formatNumber,
  formatTime,
  formatValue,
  sayCondition,
} from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { Pager } from '../fleet/fleet-page.tsx';
import { nameOf, placeAfter } from './chart/points.ts';
import type { CurrentProfile, TabProps } from './tab.ts';

/** What happened, newest first, each with the reason in a sentence. */
export function EventsTab({ uuid, senses, purposes }: TabProps) {
  const cursor = queryOf('cursor');
  const query = useQuery(`events/${uuid}/${cursor}`, (signal) => listEvents(uuid, cursor, signal));
  useEffect(
    () =>
      onStream((message) => {
        if (message.kind === 'event' && message.event.deviceAuthUuid === uuid)
          reload(`events/${uuid}`);
      }),
    [uuid],
  );
  return (
    <Answered query={query}>
      {({ body: { events }, next }) =>
        events.length === 0 ? (
          <Empty
            icon="pulse"
            title={t('device.noEvents')}
            hint={t(purposes === null ? 'device.noProfileHint' : 'device.noEventsHint')}
          />
        ) : (
          <Timeline next={next}>
            {events.map((event) => (
              <Moment key={event.eventId} ts={event.timestamp} title={titleOf(event, purposes)}>
                {sayEvent(event, senses).map((sentence) => (
                  <p key={sentence} class="event-why">
                    {sentence}
                  </p>
                ))}
              </Moment>
            ))}
          </Timeline>
        )
      }
    </Answered>
  );
}

type TimelineProps = { next: string | null; children: ComponentChildren };

/** One page of what happened, newest first. */
export function Timeline({ next, children }: TimelineProps) {
  return (
    <>
      <ol class="events">{children}</ol>
      <Pager next={next} />
    </>
  );
}

type MomentProps = { ts: number; title: string; children: ComponentChildren };

/** One entry, with its time. */
export function Moment({ ts, title, children }: MomentProps) {
  return (
    <li>
      <time class="muted" title={formatFullTime(ts)}>
        {formatTime(ts)}
      </time>
      <div>
        <p class="event-title">{title}</p>
        {children}
      </div>
    </li>
  );
}

type SenseEvent = Extract<EventView, { type: 'sense' }>;
/** What `why` says about each cause; see docs/specification.md. */
type Why = {
  sId?: string;
  thresholds?: Record<string, unknown>;
  compared?: number;
  over?: { ms: number; stat: OverStat };
  relative?: boolean;
  negate?: boolean;
  matched?: number;
  of?: number;
  needed?: number;
  heldMs?: number;
  silentMs?: number;
};

/** The name of an event in the device's current profile; the numbers if it is from an earlier one. */
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

/** Why it fired, a sentence for each cause: "Temperature was 9.7 °C, above 8 °C; 2 of the last 2 agreed, 2 needed." */
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
  // A position is only compared with an area; a value of 1 or 0 would say nothing to the reader.
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

/** What was compared: a value, or a statistic of values. */
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
