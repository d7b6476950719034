import { useQuery } from '../../api/cache.ts';
import { explainEvaluation } from '../../api/devices.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { sayCauseWhy, sayEventWhy } from './say-why.ts';
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
                  {event.causes.map((cause, place) => (
                    <li key={place} class={cause.holds ? 'cause cause-holds' : 'cause'}>
                      {sayCauseWhy(cause, senses)}
                    </li>
                  ))}
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
