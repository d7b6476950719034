import type { Profile } from './compile.ts';
import type { CompiledPurpose, CompiledState } from './compile-purpose.ts';
import type { LiveEvent } from './compile-event.ts';
import { Draft } from './draft.ts';
import type { Place } from '../contract/place.ts';
import type { Evaluated } from './outcome.ts';
import type { Deferred } from './evidence.ts';
import { enteredPurpose, enteredState, noEvidence } from './runtime.ts';
import type { Evidence, EventEvidence, Runtime } from './runtime.ts';
import { leftAtReentry } from './time-kept.ts';

/** Where a device stands, and what the live events have collected, while it is worked on. */
export class LiveEvidence {
  readonly #profile: Profile;
  readonly #base: Runtime;
  place: Place;
  purpose: CompiledPurpose | undefined;
  state: CompiledState | undefined;
  local: Draft;
  global: Draft;
  /** Events whose episodes have ended, until that is told. */
  readonly ended: LiveEvent[] = [];
  readonly localDeferred: Deferred = new Map();
  readonly globalDeferred: Deferred = new Map();

  constructor(profile: Profile, runtime: Runtime) {
    this.#profile = profile;
    this.#base = runtime;
    this.place = runtime;
    this.purpose = profile.purposes.get(runtime.puId);
    this.state = this.purpose?.states.get(runtime.stId);
    this.local = new Draft(runtime.local, this.ended);
    this.global = new Draft(runtime.global, this.ended);
  }

  draftOf({ isGlobal }: LiveEvent): Draft {
    return isGlobal ? this.global : this.local;
  }

  /** Global states' numbers are collected. Which of their events are offered one depends on the state. */
  endGlobalDeferred(): void {
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    this.globalDeferred.clear();
  }

  /**
   * A firing moves the device. `namesPurpose`: its action has a `gotoPuId`; what global states have collected is
   * then emptied, also where it is that of the current purpose.
   */
  enter(place: Place, namesPurpose: boolean, arrivedTs: number): void {
    const from = this.place;
    const isSamePurpose = place.puId === from.puId;
    const staysInState = isSamePurpose && place.stId === from.stId;
    this.place = place;
    this.purpose = this.#profile.purposes.get(place.puId);
    this.state = this.purpose?.states.get(place.stId);
    this.local = new Draft(
      staysInState
        ? anew(this.state?.staying ?? [], this.local)
        : enteredState(this.state, arrivedTs),
      this.ended,
    );
    this.localDeferred.clear();
    if (!namesPurpose) this.endGlobalDeferred();
    this.globalDeferred.clear();
    if (!namesPurpose) return;
    this.global = new Draft(
      isSamePurpose
        ? anew(this.purpose?.globalStaying ?? [], this.global)
        : enteredPurpose(this.purpose, arrivedTs),
      this.ended,
    );
  }

  /** Says which episodes have ended. */
  tellEnded(outcome: Evaluated): void {
    const { puId } = this.place;
    outcome.ended = this.ended.splice(0).map(({ stId, evId }) => ({ puId, stId, evId }));
  }

  /** The very object it began with, if that is as it was. */
  end(): Runtime {
    for (const deferred of this.localDeferred.values()) deferred.end(this.local);
    for (const deferred of this.globalDeferred.values()) deferred.end(this.global);
    const [local, global] = [this.local.end(), this.global.end()];
    const base = this.#base;
    if (this.place === base && local === base.local && global === base.global) return base;
    const { puId, stId } = this.place;
    return { puId, stId, local, global };
  }
}

/** What outlasts that a state is entered again, or the purpose: of these events only. */
function anew(staying: LiveEvent[], draft: Draft): Evidence {
  let evidence: (EventEvidence | null)[] | null = null;
  for (const event of staying) {
    const before = draft.get(event.index);
    const left = before && leftAtReentry(event, before);
    if (!left) continue;
    evidence ??= [];
    while (evidence.length < event.index) evidence.push(null);
    evidence[event.index] = left;
  }
  return evidence ?? noEvidence;
}
