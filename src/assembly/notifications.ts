import { observeOutbox } from '../metrics/observe.ts';
import { startNotifications, type Notifications } from '../notifications/notifications.ts';
import { alarmPortOf } from './people.ts';
import { contactOptions } from './contacts.ts';
import { isSmsForAll } from './install-warnings.ts';
import type { Shared } from './shared.ts';

/** What tells people: e-mail, webhooks, push and SMS. */
export async function startNotificationsOf(shared: Shared): Promise<Notifications> {
  const { config, db, log, clock, limitsOf, metrics, releases, storage } = shared;
  const notifications = await startNotifications({
    db,
    connectionString: storage.connectionString,
    config: config.notifications,
    quotasOf: limitsOf,
    isSmsForAll: isSmsForAll(config),
    contacts: contactOptions(shared),
    alarms: alarmPortOf(shared),
    log: log.child({ component: 'notifications' }),
    clock,
    believedTs: shared.believed.believedTs,
    onOutcome: observeOutbox(metrics.registry),
  });
  releases.add('notifications', () => notifications.close());
  return notifications;
}
