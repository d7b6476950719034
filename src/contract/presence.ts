/**
 * Whether a device is there. `online`: it has a connection, or a request of it waits for messages. `offline`: it
 * speaks MQTT and has none. `intermittent`: nobody can tell, because it sends over HTTP without waiting, or through
 * a bridge; when it was heard last says more.
 */
export const presences = ['online', 'offline', 'intermittent'] as const;
export type Presence = (typeof presences)[number];

/** Of a device that is connected, or was heard last, where `isIntermittent` says of which kind. */
export function presenceOf(connected: boolean, isIntermittent: boolean): Presence {
  if (connected) return 'online';
  return isIntermittent ? 'intermittent' : 'offline';
}
