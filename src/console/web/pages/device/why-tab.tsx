import { useQuery } from '../../api/cache.ts';
import { explainEvaluation } from '../../api/devices.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import type { CurrentProfile, TabProps } from './tab-props.ts';

const everyMs = 5_000;

/** What each event that can fire now still lacks. */
export function WhyTab({ uuid, nameOf, purposes }: TabProps) {
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
        return (
          <ul class="why">
            {events.map(({ stId, evId, text, causes }) => (
              <li key={`${stId}:${evId}`}>
                <p class="event-title">{eventName(purposes, puId, stId, evId)}</p>
                <p class="event-why">{text}</p>
                <ul class="causes">
                  {causes.map((cause, place) => (
                    <li key={place} class={cause.holds ? 'cause cause-holds' : 'cause'}>
                      <span class="cause-sense">{nameOf(cause.sId)}</span> {cause.text}
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
