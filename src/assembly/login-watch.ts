import { startLoginWatch, type LoginWatch } from '../devices/login-watch.ts';
import { isUuid } from '../lib/uuid.ts';
import type { Shared } from './shared.ts';

/** Keeps what this process refuses of devices' logins, and notes who is let in again. */
export function startLoginWatchOf({ db, clock, log, releases }: Shared): LoginWatch {
  const onError = (err: unknown) =>
    log
      .child({ component: 'devices' })
      .warn(
        { event: 'logins.unwritten', err },
        'Refused logins of devices could not be written; it is tried again.',
      );
  const { refused, letIn, close } = startLoginWatch({ db, clock, onError });
  releases.add('refused logins of devices', close);
  return {
    // What a device that is not known yet calls itself can be any text.
    refused: (login) => {
      if (isUuid(login.uuid)) refused(login);
    },
    letIn,
  };
}
