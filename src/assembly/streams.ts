import { randomUUID } from 'node:crypto';
import { intermittentAmong } from '../devices/pick-connector.ts';
import type { WalkAlarms } from '../events/catch-up.ts';
import { createHub, type Hub } from '../events/hub.ts';
import { createEventSource } from '../events/source.ts';
import type { Route } from '../http/route.ts';
import { createLiveHub } from '../live/hub.ts';
import { createValueSource } from '../live/source.ts';
import { createPresenceSource } from '../presence/source.ts';
import type { Exports } from '../quotas/exports.ts';
import type { StreamCount } from '../streams/count-streams.ts';
import { createReaches, type Reaches } from '../streams/reach.ts';
import { streamsRoutes } from '../streams/routes.ts';
import { WaitingRoom } from '../streams/waiting-room.ts';
import type { Tickets } from '../streams/tickets.ts';
import type { Doors } from './doors.ts';
import type { Shared } from './shared.ts';

/** No stream is silent for longer, and as often it is asked whether its reader may still read. */
const heartbeatMs = 15_000;
/** How long a reader may let a piece wait. */
const patienceMs = 30_000;

export type StreamParts = {
  doors: Pick<Doors, 'authenticate'>;
  tickets: Tickets;
  streams: StreamCount;
  exports: Exports;
  walkAlarms: WalkAlarms;
};

/** The streams of this process: those of events, which have routes of their own, and those of several kinds. */
export function createStreams(
  shared: Shared,
  { doors, tickets, streams, exports, walkAlarms }: StreamParts,
): { eventHub: Hub; reaches: Reaches; routes: Route[] } {
  const { db, bus, monotonicClock } = shared;
  const log = shared.log.child({ component: 'http' });
  const reaches = createReaches(db, bus);
  const intermittent = new Set(intermittentAmong(shared.config.connectors));
  const isIntermittent = (connectorId: number) => intermittent.has(connectorId);
  const room = new WaitingRoom(shared.memory.streamBytes);
  const eventHub = createHub({ db, bus, heartbeatMs, monotonicClock, room });
  const liveHub = createLiveHub({
    db,
    bus,
    process: randomUUID(),
    heartbeatMs,
    monotonicClock,
    room,
    onError: (err) =>
      log.warn(
        { event: 'streams.position-unread', err },
        'Committed events could not be read: streams that resume repeat more of them.',
      ),
  });
  const routes = streamsRoutes({
    bus,
    heartbeatMs,
    patienceMs,
    streams,
    tickets,
    authenticate: doors.authenticate,
    onAccountDisabled: shared.disabled.onDisabled,
    reaches,
    sources: {
      events: createEventSource({ db, hub: eventHub, exports, walkAlarms }),
      measurements: createValueSource({ db, hub: liveHub, exports }),
      devices: createPresenceSource({ bus, heartbeatMs, monotonicClock, room, isIntermittent }),
    },
  });
  return { eventHub, reaches, routes };
}
