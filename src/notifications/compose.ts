import type { NewNotification } from '../contract/notification.ts';

const lastWords = 'This is the last message today: the limit is reached.';

export function titleOf(notification: NewNotification): string {
  const { evId } = notification.event.cause.engine;
  return (notification.kind === 'push' && notification.name) || `Event ${evId}`;
}

/** An SMS is its text; a push tells what was measured. The last one of a day says so. */
export function bodyOf(notification: NewNotification, isLast: boolean): string {
  const text = textOf(notification);
  return isLast ? `${text}\n${lastWords}` : text;
}

function textOf(notification: NewNotification): string {
  if (notification.kind === 'sms') return notification.text;
  const { senses } = notification.event.cause;
  return senses
    .map(({ sId, val, lat, long }) =>
      lat === undefined ? `${sId}: ${val}` : `${sId}: ${lat}, ${long}`,
    )
    .join('; ');
}
