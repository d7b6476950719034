import { useEffect } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { listEvents } from '../../api/events.ts';
import { queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { sayEvent, titleOf } from './say-event.ts';
import type { TabProps } from './tab.ts';
import { Moment, Timeline } from './timeline.tsx';

/** What happened, newest first, each with why in a sentence. */
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
          <Empty icon="pulse" title={t('device.noEvents')} hint={t('device.noEventsHint')} />
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
