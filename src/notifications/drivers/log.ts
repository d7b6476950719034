import type { NotificationLog } from '../log.ts';
import { DeliveryError, type Driver } from '../channels/channel.ts';

/** Writes SMS to the log and reaches nobody: for trying out. */
export function logDriver(log: NotificationLog): Driver {
  return {
    name: 'log',
    isLog: true,
    send: async ({ id, body }) => {
      log.info(
        { event: 'notification.logged', notificationId: id, text: body },
        'An SMS was written to the log only.',
      );
    },
    close: async () => {},
  };
}

/** Stands where no push service is configured: the outcome says so. */
export function noPushDriver(): Driver {
  return {
    name: 'none',
    send: async () => {
      throw new DeliveryError('never', 'no-provider', 'No push service is configured.');
    },
    close: async () => {},
  };
}
