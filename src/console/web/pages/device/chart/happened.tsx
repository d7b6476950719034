import { useRef } from 'preact/hooks';
import type { EventView, Sense } from '../../../api/types.ts';
import { queryOf, setQuery } from '../../../app/router.ts';
import { formatFullTime, formatNumber, formatTime } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';
import { sayEvent, titleOf } from '../say-event.ts';
import type { CurrentProfile } from '../tab.ts';
import { type Cluster, clusters } from './clusters.ts';
import type { Span } from './span.ts';
import { partOf } from './strip.tsx';
import { useWidth } from './use-width.ts';

type MarksProps = {
  /** Newest first. */
  events: readonly EventView[];
  isCut: boolean;
  span: Span;
  senses: ReadonlyMap<string, Sense>;
  profile: CurrentProfile | null;
};

const markPx = 24;

/** Events as marks; each opens what it was and why. Marks that would touch are one. */
export function Marks({ events, isCut, span, senses, profile }: MarksProps) {
  const lane = useRef<HTMLOListElement>(null);
  const width = useWidth(lane, 600);
  const groups = clusters(events, span, markPx / Math.max(width, markPx));
  const asked = queryOf('event');
  const open = groups.find((group) => group.events.some(({ eventId }) => eventId === asked));
  return (
    <div class="lane">
      <p class="lane-name">
        {t('device.events')}
        {isCut && (
          <span class="fine"> {t('chart.eventsCut', { most: formatNumber(events.length) })}</span>
        )}
      </p>
      <ol class="marks" ref={lane} aria-label={t('device.events')}>
        {groups.map((group) => (
          <Mark
            key={group.events[0]?.eventId}
            {...{ group, span, profile }}
            isOpen={group === open}
          />
        ))}
      </ol>
      {open && <Opened cluster={open} senses={senses} profile={profile} />}
    </div>
  );
}

type MarkProps = { group: Cluster; span: Span; profile: CurrentProfile | null; isOpen: boolean };

function Mark({ group: { ts, events }, span, profile, isOpen }: MarkProps) {
  const [newest] = events;
  if (!newest) return null;
  const what =
    events.length === 1 ? titleOf(newest, profile) : count('chart.events', events.length);
  const choose = () => setQuery({ event: isOpen ? '' : newest.eventId }, { replace: true });
  return (
    <li style={{ left: partOf(ts, span) }}>
      <button
        type="button"
        class={`mark mark-${newest.type}`}
        aria-expanded={isOpen}
        aria-label={`${what}, ${formatTime(newest.timestamp)}`}
        title={`${what}, ${formatTime(newest.timestamp)}`}
        onClick={choose}
      >
        {events.length > 1 && (events.length > 99 ? '99' : events.length)}
      </button>
    </li>
  );
}

const mostSaid = 8;

function Opened({
  cluster: { events },
  senses,
  profile,
}: Pick<MarksProps, 'senses' | 'profile'> & { cluster: Cluster }) {
  const rest = events.length - mostSaid;
  return (
    <div class="opened" role="status">
      <ul>
        {events.slice(0, mostSaid).map((event) => (
          <li key={event.eventId}>
            <p class="event-title">
              {titleOf(event, profile)} <time class="fine">{formatFullTime(event.timestamp)}</time>
            </p>
            {sayEvent(event, senses).map((sentence) => (
              <p key={sentence} class="event-why">
                {sentence}
              </p>
            ))}
          </li>
        ))}
      </ul>
      {rest > 0 && <p class="fine">{count('chart.moreEvents', rest)}</p>}
      <button type="button" class="link" onClick={() => setQuery({ event: '' }, { replace: true })}>
        {t('chart.closeEvent')}
      </button>
    </div>
  );
}
