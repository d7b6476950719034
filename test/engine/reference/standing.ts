import type { Place } from '../../../src/contract/values.ts';
import type { Cause, Purpose, PurposeEvent } from '../../../src/contract/purpose.ts';
import type { Log } from './log.ts';

/** A live event, with its purpose and the number of its state. */
export type Live = {
  purpose: Purpose;
  stId: number;
  isGlobal: boolean;
  event: PurposeEvent;
  /** With `anyOf` those of all groups, one group after the other. */
  causes: Cause[];
  /** The indexes of the causes that fire it together: all of them, or with `anyOf` those of each group. */
  groups: number[][];
};

/** Where a device is, and everything that happened to its live events since they became live. */
export class Standing {
  readonly #purposes: Purpose[];
  place: Place;
  /** When the state and the purpose were entered. */
  #enteredTs: { local: number; global: number };
  /** By `stId/evId`. */
  #local = new Map<string, Log>();
  #global = new Map<string, Log>();

  constructor(purposes: Purpose[], arrivedTs: number) {
    this.#purposes = purposes;
    this.#enteredTs = { local: arrivedTs, global: arrivedTs };
    const [first] = purposes;
    this.place = { puId: first?.puId ?? 0, stId: first?.initStId ?? 0 };
  }

  /** In the order in which they are tried. */
  live(): Live[] {
    const { puId, stId: current } = this.place;
    const purpose = this.#purposes.find((it) => it.puId === puId);
    if (!purpose) return [];
    const own = purpose.states.filter(({ stId }) => stId === current);
    const others = purpose.states.filter(({ stId, isGlobal }) => isGlobal && stId !== current);
    return [...own, ...others].flatMap(({ stId, isGlobal, events }) =>
      events.map((event) => ({ purpose, stId, isGlobal, event, ...groupsOf(event) })),
    );
  }

  logOf({ stId, isGlobal, event }: Live): Log {
    const logs = isGlobal ? this.#global : this.#local;
    const key = `${stId}/${event.evId}`;
    const enteredTs = isGlobal ? this.#enteredTs.global : this.#enteredTs.local;
    const log = logs.get(key) ?? { enteredTs, entries: [] };
    logs.set(key, log);
    return log;
  }

  /** Where a firing moves the device, if anywhere. */
  targetOf({ purpose, event }: Live): Place | null {
    const { gotoPuId, gotoStId } = event.actions.engine ?? {};
    if (gotoPuId === undefined && gotoStId === undefined) return null;
    const puId = gotoPuId ?? purpose.puId;
    const target = this.#purposes.find((it) => it.puId === puId);
    const stId = gotoStId ?? target?.initStId;
    const state = target?.states.find((it) => it.stId === stId);
    return state ? { puId, stId: state.stId } : null;
  }

  /** Whether an event stays live after a move: its state stays, or for a global one its purpose. */
  stays({ isGlobal }: Live, to: Place): boolean {
    return to.puId === this.place.puId && (isGlobal || to.stId === this.place.stId);
  }

  /** Moves by a firing: the state, or a purpose that it names, is entered again if the device is in it. */
  move({ event }: Live, to: Place, arrivedTs: number): void {
    const { puId, stId } = this.place;
    const namesPurpose = event.actions.engine?.gotoPuId !== undefined;
    const reentered = [
      ...(to.puId === puId && to.stId === stId ? this.#local.values() : []),
      ...(to.puId === puId && namesPurpose ? this.#global.values() : []),
    ];
    for (const { entries } of reentered) entries.push({ kind: 're-entry' });
    this.report(to, arrivedTs);
  }

  /** Moves by a report. A report of the present state changes nothing. */
  report(to: Place, arrivedTs: number): void {
    const { puId, stId } = this.place;
    if (to.puId === puId && to.stId === stId) return;
    this.#local = new Map();
    this.#enteredTs.local = arrivedTs;
    if (to.puId !== puId) {
      this.#global = new Map();
      this.#enteredTs.global = arrivedTs;
    }
    this.place = to;
  }
}

function groupsOf({ causes, anyOf }: PurposeEvent): Pick<Live, 'causes' | 'groups'> {
  const lists = (anyOf ?? [causes]).map(inOrder);
  let first = 0;
  const groups = lists.map((list) => list.map(() => first++));
  return { causes: lists.flat(), groups };
}

/** Causes with equal `orderId` keep the order of the purpose. */
function inOrder(causes: Cause[]): Cause[] {
  return causes.toSorted((one, other) => (one.orderId ?? 0) - (other.orderId ?? 0));
}
