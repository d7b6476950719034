import type { DeviceEvent, EngineCause, SenseEvent } from '../../../src/contract/event.ts';
import type { Place } from '../../../src/contract/values.ts';
import type { Firing, Transition } from '../../../src/engine/compile.ts';
import { beganOf } from './begun.ts';
import type { Cause } from '../../../src/contract/purpose.ts';
import type { Live } from './standing.ts';
import type { Log } from './log.ts';
import { tellsOf } from './tells.ts';
import { detailsOf } from './told.ts';

/** `nowTs`: by the service's clock, from which silences count. */
type At = { ts: number; nowTs: number; ageMs: number; isFirst: boolean; group: number };

/** The firing of an event whose causes all hold, with `anyOf` those of that group. */
export function firingOf(live: Live, log: Log, at: At): Firing {
  const { ts, nowTs, ageMs, isFirst, group } = at;
  const { purpose, stId, event, causes, groups } = live;
  const { evId, actions, name = '', eventLog } = event;
  const indexes = groups[group] ?? [];
  const details = indexes.map((index) =>
    detailsOf(log, causes[index] as Cause, index, { ts, nowTs }),
  );
  const found: SenseEvent = {
    type: 'sense',
    ts,
    cause: {
      engine: { pId: 'p', puId: purpose.puId, stId, evId, ts },
      senses: details.flatMap(({ sense }) => (sense ? [sense] : [])),
    },
    why: details.map(({ why }) => (event.anyOf ? { ...why, group } : why)),
  };
  const { sendEvent, sendLog } = actions.cloud ?? {};
  const record = eventLog || sendEvent === true || sendLog === true;
  const tells = tellsOf(purpose, stId, event);
  const isKept = tells === 'alarm' || tells === 'silent-alarm';
  const began = isKept ? beganOf(causes, indexes, log, { ts, arrivedTs: nowTs }) : null;
  return { event: found, name, record, actions, tells, isFirst, ageMs, began };
}

/** The move of a firing at `ts`; no `event` if the device enters the state it is in. */
export function movedOf(
  { purpose, stId, event }: Live,
  from: Place,
  to: Place,
  ts: number,
): Transition {
  const moved = moveEventOf({ pId: 'p', puId: purpose.puId, stId, evId: event.evId, ts }, from, to);
  return moved ? { to, event: moved } : { to };
}

/** The event that records a move; null if the device enters the state it is in. */
export function moveEventOf(engine: EngineCause, from: Place, to: Place): DeviceEvent | null {
  const moved = { type: 'device' as const, ts: engine.ts, cause: { engine } };
  if (from.puId !== to.puId) {
    const [newValue, oldValue] = [to.puId, from.puId];
    return { ...moved, event: 'purposeChanged' as const, newValue, oldValue };
  }
  if (from.stId === to.stId) return null;
  const [newValue, oldValue] = [to.stId, from.stId];
  return { ...moved, event: 'stateChanged' as const, newValue, oldValue };
}
