import type { SenseEvent } from '../../../src/contract/event.ts';
import type { Place } from '../../../src/contract/place.ts';
import type { Firing, Transition } from '../../../src/engine/outcome.ts';
import type { Live } from './standing.ts';
import type { Log } from './log.ts';
import { tellsOf } from './tells.ts';
import { detailsOf } from './told.ts';

type At = { ts: number; ageMs: number; isFirst: boolean };

/** The firing of an event whose causes all hold. */
export function firingOf(live: Live, log: Log, { ts, ageMs, isFirst }: At): Firing {
  const { purpose, stId, event, causes } = live;
  const { evId, actions, name = '', eventLog } = event;
  const details = causes.map((cause, index) => detailsOf(log, cause, index, ts));
  const found: SenseEvent = {
    type: 'sense',
    ts,
    cause: {
      engine: { pId: 'p', puId: purpose.puId, stId, evId, ts },
      senses: details.flatMap(({ sense }) => (sense ? [sense] : [])),
    },
    why: details.map(({ why }) => why),
  };
  const { sendEvent, sendLog } = actions.cloud ?? {};
  const record = eventLog || sendEvent === true || sendLog === true;
  const tells = tellsOf(purpose, stId, event);
  return { event: found, name, record, actions, tells, isFirst, ageMs };
}

/** The move by a firing at `ts`; no `event` where the device enters the state it is in. */
export function movedOf(
  { purpose, stId, event }: Live,
  from: Place,
  to: Place,
  ts: number,
): Transition {
  const engine = { pId: 'p', puId: purpose.puId, stId, evId: event.evId, ts };
  const moved = { type: 'device' as const, ts, cause: { engine } };
  if (from.puId !== to.puId) {
    const [newValue, oldValue] = [to.puId, from.puId];
    return { to, event: { ...moved, event: 'purposeChanged' as const, newValue, oldValue } };
  }
  if (from.stId === to.stId) return { to };
  const [newValue, oldValue] = [to.stId, from.stId];
  return { to, event: { ...moved, event: 'stateChanged' as const, newValue, oldValue } };
}
