import { compileCause } from './compile-cause.ts';
import type { CompiledCause } from './compile-cause.ts';
import { type Actions, listAsked } from '../contract/actions.ts';
import type { Action } from '../contract/actions/action.ts';
import type { Purpose, PurposeEvent, State } from '../contract/purpose.ts';
import { targetOf } from './move-target.ts';
import type { MoveTarget } from './move-target.ts';
import type { Tells } from './outcome.ts';
import { tellsOf } from './tells.ts';

export type LiveEvent = {
  stId: number;
  evId: number;
  name: string;
  isGlobal: boolean;
  /** Its place in the evidence of a runtime: among the events of its state, or of all global ones. */
  index: number;
  /** Name of its evidence in a runtime that is stored. */
  key: string;
  /** By ascending orderId. */
  causes: CompiledCause[];
  actions: Actions;
  /** Whether a firing is recorded as a `sense` event. */
  record: boolean;
  /** Whom a firing concerns. */
  tells: Tells;
  /** Whether it is kept which firings are of one episode: alarms are. */
  hasEpisodes: boolean;
  /** Whether an episode of it may outlast outcomes that disagree. */
  isLenient: boolean;
  /** Whether one of its causes has members of time. */
  isTimed: boolean;
  /** Whether one of them has `maxAgeMs`. */
  isAged: boolean;
  /** Whether something of it outlasts that its state is entered again. */
  staysAtReentry: boolean;
  target: MoveTarget | null;
  /** Whether a firing is seen by nobody, but for where it moves the device. */
  isSilent: boolean;
  /** Whether one measurement that its causes agree with fires it, and leaves nothing behind: nobody sees that either. */
  isSpentAtOnce: boolean;
};

/** `index` is its place in the evidence; `initStIds`: where each purpose of the profile begins, by puId. */
export function compileEvent(
  purpose: Purpose,
  state: State,
  event: PurposeEvent,
  index: number,
  initStIds: ReadonlyMap<number, number>,
): LiveEvent {
  const { actions } = event;
  const causes = event.causes
    .map(compileCause)
    .toSorted((one, other) => one.orderId - other.orderId);
  const asked = listAsked(actions);
  const reaches = (whom: Action<Actions>['reaches']) => asked.some((kind) => kind.reaches === whom);
  const record = event.eventLog || reaches('history');
  const [cause] = causes;
  const isSpentAtOnce =
    causes.length > 0 &&
    causes.every(({ sId, needed, relative }) => sId === cause?.sId && needed === 1 && !relative);
  const target = targetOf(purpose, actions, initStIds);
  const told = { causes, target, stId: state.stId, actions };
  const tells = tellsOf(told, purpose, reaches('people'));
  const hasEpisodes = tells === 'alarm' || tells === 'silent-alarm';
  const isTimed = causes.some(({ time }) => time !== null);
  const isSilent = !record && tells === 'nobody' && !reaches('device');
  return {
    stId: state.stId,
    evId: event.evId,
    name: event.name ?? '',
    isGlobal: state.isGlobal,
    index,
    key: `${state.stId}/${event.evId}`,
    causes,
    actions,
    record,
    tells,
    hasEpisodes,
    isLenient: hasEpisodes && causes.some(({ slack }) => slack > 0),
    isTimed,
    isAged: causes.some(({ time }) => time?.maxAgeMs),
    staysAtReentry: hasEpisodes || isTimed,
    target,
    isSilent,
    isSpentAtOnce: isSilent && isSpentAtOnce && !isTimed,
  };
}
