import type { Evaluated, Firing, Tells, Transition } from '../../../src/engine/outcome.ts';
import type { EventName, SenseEvent } from '../../../src/contract/event.ts';
import type { Measurement } from '../../../src/contract/measurement.ts';
import type { Cause, Purpose, PurposeEvent } from '../../../src/contract/purpose.ts';
import { detailsOf, isInFull, judge } from './cause.ts';
import type { Collected } from './cause.ts';

/** A live event with the number of the state that holds it. */
type Live = { stId: number; isGlobal: boolean; event: PurposeEvent; causes: Cause[] };
/** `lately`: by cause, whether each outcome since the episode began agreed. */
type Memory = { causes: Collected[]; rung: boolean; lately: boolean[][] };

/**
 * The purpose engine as docs/engine.md words it, and no more: every measurement is offered to every
 * cause of every live event, and every outcome is kept. What the service's engine does at less cost has
 * to come to the same.
 */
export class ReferenceEngine {
  readonly #purposes: Purpose[];
  puId: number;
  stId: number;
  /** Of states by `stId/evId`; of global ones in `global`. */
  local = new Map<string, Memory>();
  global = new Map<string, Memory>();

  constructor(purposes: Purpose[]) {
    this.#purposes = purposes;
    this.puId = purposes[0]?.puId ?? 0;
    this.stId = purposes[0]?.initStId ?? 0;
  }

  /** Of a measurement that is news. */
  measure(measurement: Measurement): Evaluated {
    const firings: Firing[] = [];
    const ended: EventName[] = [];
    const given = { ended, arrivedTs: measurement.ts };
    const all = this.live();
    for (const [position, live] of all.entries()) {
      const memory = this.memoryOf(live);
      const before = JSON.stringify(memory);
      this.#take(live, measurement, false, ended);
      const isOffered = JSON.stringify(memory) !== before;
      const holdsAll = live.causes.every((cause, i) => isInFull(cause, memory.causes[i]));
      if (!isOffered || live.causes.length === 0 || !holdsAll) continue;
      firings.push(this.#fire(live, memory, measurement.ts));
      const to = this.#targetOf(live);
      if (!to) continue;
      const stays = ({ isGlobal }: Live) =>
        to.puId === this.puId && (isGlobal || to.stId === this.stId);
      for (const later of all.slice(position + 1))
        if (stays(later)) this.#take(later, measurement, true, ended);
      return { firings, transition: this.#move(live, to, measurement.ts), ...given };
    }
    return { firings, ...given };
  }

  /** What a measurement is to an event; where it leaves a state, only if it disagrees. */
  #take(live: Live, measurement: Measurement, isLeaving: boolean, ended: EventName[]): void {
    const memory = this.memoryOf(live);
    const { rung } = memory;
    for (const [index, cause] of live.causes.entries()) {
      const collected = memory.causes[index];
      if (!collected || cause.sId !== measurement.sId) continue;
      const judgement = judge(cause, measurement.val, collected.baseline);
      if (!judgement || (isLeaving && judgement.agrees)) continue;
      if (cause.threshold?.relative && typeof measurement.val === 'number') {
        collected.baseline ??= measurement.val + 0;
      }
      collected.outcomes.push(judgement.agrees ? { ...judgement, ...measurement } : null);
      const n = cause.threshold?.count ?? 1;
      const m = Math.max(n, cause.measurement?.count ?? 0);
      if (rung) memory.lately[index]?.push(judgement.agrees);
      const last = memory.lately[index]?.slice(-m) ?? [];
      if (rung && last.filter((agrees) => !agrees).length > m - n) memory.rung = false;
    }
    if (!rung || memory.rung) return;
    memory.lately = live.causes.map(() => []);
    ended.push({ puId: this.puId, stId: live.stId, evId: live.event.evId });
  }

  /** In the order in which they are tried. */
  live(): Live[] {
    const states = this.#purposes.find(({ puId }) => puId === this.puId)?.states ?? [];
    const own = states.filter(({ stId }) => stId === this.stId);
    const others = states.filter(({ stId, isGlobal }) => isGlobal && stId !== this.stId);
    return [...own, ...others].flatMap(({ stId, isGlobal, events }) =>
      events.map((event) => ({ stId, isGlobal, event, causes: inOrder(event.causes) })),
    );
  }

  memoryOf({ stId, isGlobal, event, causes }: Live): Memory {
    const scope = isGlobal ? this.global : this.local;
    const key = `${stId}/${event.evId}`;
    const known = scope.get(key);
    if (known) return known;
    const collected = causes.map((): Collected => ({ outcomes: [] }));
    const memory = { causes: collected, rung: false, lately: causes.map(() => []) };
    scope.set(key, memory);
    return memory;
  }

  #fire({ stId, event, causes }: Live, memory: Memory, ts: number): Firing {
    const { evId, actions, name = '', eventLog } = event;
    const engine = { pId: 'p', puId: this.puId, stId, evId, ts };
    const details = causes.flatMap((cause, i) => detailsOf(cause, memory.causes[i]));
    const sense: SenseEvent = {
      type: 'sense',
      ts,
      cause: { engine, senses: details.map(({ sense }) => sense) },
      why: details.map(({ why }) => why),
    };
    const tells = this.#tellsOf({ stId, event });
    const isFirst = !memory.rung;
    for (const collected of memory.causes) collected.outcomes = [];
    memory.rung = tells === 'alarm' || tells === 'silent-alarm';
    const { sendEvent, sendLog } = actions.cloud ?? {};
    const record = eventLog || sendEvent === true || sendLog === true;
    return { event: sense, name, record, actions, tells, isFirst, ageMs: 0 };
  }

  #tellsOf({ stId, event }: Pick<Live, 'stId' | 'event'>): Tells {
    const { actions, causes } = event;
    const sends = actions.cloud?.sendPush === true || (actions.sms?.phoneNumber ?? []).length > 0;
    if (actions.alarm === true) return sends ? 'alarm' : 'silent-alarm';
    if (!sends) return 'nobody';
    const { initStId } = this.#purposes.find(({ puId }) => puId === this.puId) ?? {};
    const { gotoPuId = this.puId, gotoStId = gotoPuId === this.puId ? initStId : NaN } =
      actions.engine ?? {};
    const leads = actions.engine?.gotoPuId !== undefined || actions.engine?.gotoStId !== undefined;
    const leadsBack = leads && stId !== initStId && gotoPuId === this.puId && gotoStId === initStId;
    const isNotice = actions.alarm === false || causes.every((it) => isAnyOnly(it)) || leadsBack;
    return isNotice ? 'notice' : 'alarm';
  }

  #targetOf({ event }: Live): { puId: number; stId: number } | null {
    const { gotoPuId, gotoStId } = event.actions.engine ?? {};
    const puId = gotoPuId ?? this.puId;
    const purpose = this.#purposes.find((it) => it.puId === puId);
    const to = { puId, stId: gotoStId ?? purpose?.initStId ?? NaN };
    const goes = gotoPuId !== undefined || gotoStId !== undefined;
    return goes && purpose?.states.some((it) => it.stId === to.stId) ? to : null;
  }

  #move({ stId, event }: Live, to: { puId: number; stId: number }, ts: number): Transition {
    const from = { puId: this.puId, stId: this.stId };
    const engine = { pId: 'p', puId: this.puId, stId, evId: event.evId, ts };
    const moved = { type: 'device' as const, ts, cause: { engine } };
    this.enter(to, event.actions.engine?.gotoPuId !== undefined);
    if (from.puId !== to.puId) {
      const event = 'purposeChanged' as const;
      return { to, event: { ...moved, event, newValue: to.puId, oldValue: from.puId } };
    }
    if (from.stId === to.stId) return { to };
    const changed = { event: 'stateChanged' as const, newValue: to.stId, oldValue: from.stId };
    return { to, event: { ...moved, ...changed } };
  }

  /** Episodes go on in what is not left. */
  enter(to: { puId: number; stId: number }, namesPurpose: boolean): void {
    const staysInPurpose = to.puId === this.puId;
    this.local = staysInPurpose && to.stId === this.stId ? anew(this.local) : new Map();
    if (namesPurpose) this.global = staysInPurpose ? anew(this.global) : new Map();
    this.puId = to.puId;
    this.stId = to.stId;
  }
}

function anew(memories: Map<string, Memory>): Map<string, Memory> {
  const emptied = [...memories].map(([key, { causes, rung, lately }]): [string, Memory] => {
    return [key, { causes: causes.map(() => ({ outcomes: [] })), rung, lately }];
  });
  return new Map(emptied);
}

/** Where `orderId` is the same, as in the purpose. */
function inOrder(causes: Cause[]): Cause[] {
  return causes.toSorted((one, other) => (one.orderId ?? 0) - (other.orderId ?? 0));
}

function isAnyOnly({ thresholds, threshold }: Cause): boolean {
  const { isAny, ...others } = thresholds;
  if (threshold?.negate) return false;
  return isAny === true && Object.values(others).every((member) => member === undefined);
}
