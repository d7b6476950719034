import {
  type Alarm,
  beginDraft,
  closeDue,
  decide,
  type DeviceDraft,
  type RuleOptions,
} from '../alarms/rules.ts';
import type { Sense } from '../contract/configuration.ts';
import type { RecordedEvent, SenseEvent } from '../contract/event.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import { isSamePlace } from '../contract/values.ts';
import { numbered, type Profile } from '../engine/compile.ts';
import { CowArray, type Listening, type Newest } from '../engine/last-seen.ts';
import { encodeRuntime, readRuntime } from '../engine/runtime-codec.ts';
import { type Runtime, startRuntime } from '../engine/runtime.ts';
import { apply } from '../ingest/rules/apply.ts';
import type { DeviceInput, Given, PlacedInput } from '../ingest/rules/device-input.ts';
import { givenOf } from '../ingest/rules/inputs.ts';
import { EventTimes, MessageEvaluation } from '../ingest/rules/measurements.ts';
import {
  type ApplyLimits,
  Budget,
  type Changes,
  type DeviceState,
  type Message,
  type MessageScope,
  noChanges,
} from '../ingest/rules/model.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { Measurements } from './measurements.ts';

/**
 * Why what is played may differ from what happened. `begins-late`: inputs from before the first one that is there are
 * missing. `clock-break`: arrivals came twice. `unknown-profile`: a profile's purposes are not kept any more.
 * `cut-gaps`, `long-evidence`: too much to be kept with an input. `device-engine`: the device evaluates itself, and its
 * reports of events are not played. `differs`: the device was not as it was read then, and is played on as it was read.
 */
export type Caveat =
  | 'begins-late'
  | 'clock-break'
  | 'unknown-profile'
  | 'cut-gaps'
  | 'long-evidence'
  | 'device-engine'
  | 'differs';

/** Where a player stands between two arrivals, as JSON. `given`: null if nothing is known of the device yet. */
type SavedPlayer = {
  given: Given | null;
  waitingSenses: string[];
  runsTicks: boolean;
  alarms: Alarm[];
  caveats: Caveat[];
};

type PlayerOptions = {
  device: DeviceIdentity;
  limits: Pick<ApplyLimits, 'ringMaxAgeMs'>;
  rules: RuleOptions;
};

/** Every tick waits for ever: those that ran are inputs. */
const notListening: Listening = { gaps: [{ fromTs: -Infinity, toTs: null }] };

/**
 * Plays one device: gives it what it was given, in the order in which ingest evaluated it, to the rules that ingest
 * uses. Pure. `events` and `alarms` are what results; whoever takes some away removes them from there.
 */
export class Player {
  readonly events: RecordedEvent[] = [];
  /** Firings that are not recorded, and notify people. */
  readonly unrecorded: SenseEvent[] = [];
  /** Each alarm that opened, in that order. They change as they go on, and close. */
  readonly alarms: Alarm[] = [];
  readonly caveats = new Set<Caveat>();
  readonly #options: PlayerOptions;
  readonly #limits: ApplyLimits;
  #draft: DeviceDraft;
  #state: DeviceState;
  /** Whether something is known of the device. */
  #isBegun = false;
  /** Ticks run when they are due, not when they ran. */
  #runsTicks = false;
  /** When its connector listened; undefined: always. */
  #listening: Listening | undefined;

  constructor(options: PlayerOptions) {
    this.#options = options;
    this.#limits = {
      ...openLimits,
      listeningOf: () => (this.#runsTicks ? this.#listening : notListening),
      ...options.limits,
    };
    this.#state = unknownDevice(options.device);
    this.#draft = this.#draftOf([]);
  }

  #draftOf(open: Alarm[]): DeviceDraft {
    const before = { open, lasting: [], snoozes: [], mute: null, carried: null };
    return beginDraft(before, { options: this.#options.rules, nowTs: 0, asks: [] });
  }

  /**
   * Where it stands, so that another player can go on from there (`load`) as this one would. What resulted so far is
   * not part of that, except alarms that are open.
   */
  save(): SavedPlayer {
    const { waitingSenses } = this.#state;
    return {
      given: this.#isBegun ? givenOf(this.#state, Infinity) : null,
      waitingSenses: [...(waitingSenses ?? [])],
      runsTicks: this.#runsTicks,
      alarms: this.alarms.filter(({ closedTs }) => closedTs === null).map((one) => ({ ...one })),
      caveats: [...this.caveats],
    };
  }

  /** Goes on from where another player stood. `profileOf`: as for `take`; `listening`: as for `begin`. */
  load(
    { given, waitingSenses, runsTicks, alarms, caveats }: SavedPlayer,
    profileOf: (pId: string) => Profile | undefined,
    listening?: Listening,
  ): void {
    for (const caveat of caveats) this.caveats.add(caveat);
    this.#runsTicks = runsTicks;
    this.#listening = listening;
    if (given) this.#give(given, profileOf);
    if (waitingSenses.length > 0)
      this.#state = { ...this.#state, waitingSenses: new Set(waitingSenses) };
    this.#draft = this.#draftOf(alarms);
    for (const { alarm } of this.#draft.open.values()) this.alarms.push(alarm);
  }

  /** Begins with a profile that becomes current at that time, ms, and whose ticks run when they are due. */
  begin(profile: Profile, fromTs: WallMs, listening?: Listening): void {
    const runtime = startRuntime(profile, fromTs);
    const place = { puId: runtime.puId, stId: runtime.stId };
    this.#state = {
      ...this.#state,
      senses: new Map([...profile.senses.keys()].map((sId): [string, Sense] => [sId, { sId }])),
      place,
      placeTs: fromTs,
      current: { profile, engine: 'service' },
      runtime,
      watched: profile.senses,
    };
    this.#isBegun = true;
    this.#runsTicks = true;
    this.#listening = listening;
  }

  /** Measurements that follow each other, from `from` up to `end`: all of an arrival, unless an input is among them. */
  measure(all: Measurements, from: number, end: number): void {
    if (from === end || !this.#isBegun) return;
    const rows = noChanges();
    const before = this.#state;
    const scope = { ...playedScope, rows, limits: this.#limits, budget: new Budget(Infinity) };
    const times = new EventTimes(before, scope);
    const evaluation = new MessageEvaluation(before, scope);
    const profile = before.current?.profile;
    const isTicking = this.#runsTicks && profile?.isTimed === true;
    const namesSilent = profile?.isTimed === true && hasSilence(profile);
    for (let n = from; n < end; n += 1) {
      const sId = all.senseOf(n);
      // Another profile that is played beside this one may read it.
      if (this.#runsTicks && !before.watched.has(sId)) continue;
      const arrivedTs = all.arrivedOf(n);
      if (arrivedTs !== scope.arrivedTs) {
        scope.arrivedTs = arrivedTs;
        if (namesSilent) evaluation.know(times);
        if (isTicking) evaluation.runUntil(arrivedTs);
      }
      const measurement = { sId, val: all.valOf(n), ts: all.tsOf(n) };
      const t = times.take(measurement, all.isStamped(n), '');
      if (t !== null) evaluation.measure(measurement, t);
    }
    this.#state = { ...times.end(evaluation.end()), evidenceLog: null };
    this.#collect(rows);
  }

  /** Another input. `profileOf`: the profile with that `pId`; undefined if it is not kept any more. */
  take(input: PlacedInput, profileOf: (pId: string) => Profile | undefined): void {
    const { arrived } = input;
    if (input.kind === 'break') {
      this.caveats.add('clock-break');
      return;
    }
    if (input.kind === 'given') {
      this.#give(input.body, profileOf);
      return;
    }
    if (!this.#isBegun) this.caveats.add('begins-late');
    else if (input.kind === 'tick') this.#tick(input.body, arrived);
    else this.#apply(contentOf(input), arrived);
    if (this.#state.current?.engine === 'device') this.caveats.add('device-engine');
  }

  /** Does what time alone does until then: ticks, where they run when they are due, and alarms that close. */
  end(untilTs: WallMs): void {
    if (!this.#isBegun) return;
    if (this.#runsTicks) this.#apply({ kind: 'tick' }, untilTs);
    closeDue(this.#draft, untilTs);
  }

  #tick(body: (DeviceInput & { kind: 'tick' })['body'], arrived: number): void {
    const { isTick = false, doubtMs = 0, gaps = [], isCut, budget: began } = body ?? {};
    if (isCut) this.caveats.add('cut-gaps');
    const budget = new Budget(began?.limit ?? Infinity);
    budget.spent = began?.spent ?? 0;
    const known = {
      listeningOf: () => ({ gaps }),
      // Nothing is later than that, so nothing is brought back: only a tick of its own does so.
      doubtSpanMs: () => (isTick ? doubtMs : Infinity),
    };
    this.#apply({ kind: 'tick' }, arrived, known, budget);
  }

  #give(given: Given, profileOf: (pId: string) => Profile | undefined): void {
    const { pending, current, place, reported, answers, sIds } = given;
    const found = [current, pending].map((one) => (one ? profileOf(one.pId) : null));
    const [currentProfile = null, pendingProfile = null] = found;
    if (found.includes(undefined)) this.caveats.add('unknown-profile');
    const runtime =
      currentProfile && given.runtime ? readRuntime(currentProfile, given.runtime) : null;
    if (currentProfile && !runtime && !this.#isBegun) this.caveats.add('long-evidence');
    if (current?.engine === 'device') this.caveats.add('device-engine');
    const numbers = numbered(
      new Set([...(currentProfile?.senses.keys() ?? []), ...(pendingProfile?.senses.keys() ?? [])]),
    );
    const before = this.#state;
    if (this.#isBegun && !isAs(before, { profile: currentProfile, runtime, given }))
      this.caveats.add('differs');
    this.#state = {
      ...before,
      senses: new Map(sIds.map((sId): [string, Sense] => [sId, { sId }])),
      place: { puId: place.puId, stId: place.stId },
      placeTs: place.ts,
      reported,
      answersProfiles: answers,
      current: current && currentProfile && { profile: currentProfile, engine: current.engine },
      pending: pendingProfile,
      pendingTs: pending?.ts ?? null,
      runtime: runtime ?? (currentProfile && before.runtime),
      watched: numbers,
      seen: CowArray.of<Newest>([...numbers.keys()].map((sId) => given.seen[sId])),
      clocks: new Map(Object.entries(given.clocks)),
    };
    this.#isBegun = true;
  }

  #apply(
    content: Parameters<typeof apply>[1]['content'],
    arrivedTs: WallMs,
    also: Partial<ApplyLimits> = {},
    budget = new Budget(Infinity),
  ): void {
    const limits = { ...this.#limits, ...also };
    const rows = noChanges();
    const size = 'items' in content ? content.items.length : 1;
    const fragment = { message: messageOf(arrivedTs), content, size, rejections: [] };
    // Only what counted is given here, so it counts again.
    const reported = content.kind === 'state' ? null : this.#state.reported;
    const before = { ...this.#state, arrival: null, reported };
    const { deviceState } = apply(before, fragment, rows, limits, budget, null);
    this.#state = { ...deviceState, evidenceLog: null };
    this.#collect(rows);
  }

  #collect({ events, signals }: Changes): void {
    for (const { event } of events) this.events.push(event);
    for (const signal of signals) {
      this.#draft.nowTs = signal.arrivedTs;
      const before = new Set(this.#draft.open.values());
      if (signal.kind === 'fired' && !signal.isRecorded) this.unrecorded.push(signal.event);
      decide(this.#draft, signal);
      for (const draft of this.#draft.open.values())
        if (!before.has(draft)) this.alarms.push(draft.alarm);
    }
    this.#draft.asks.length = 0;
    this.#draft.verdicts.length = 0;
    this.#draft.closed.length = 0;
    for (const draft of this.#draft.open.values()) draft.ask = null;
  }
}

/** Whether an event of it waits for a silence, and so names the newest value of a sense that is not heard. */
function hasSilence({ purposes }: Profile): boolean {
  const known = silences.get(purposes);
  if (known !== undefined) return known;
  const events = [...purposes.values()].flatMap(({ states, globalEvents }) => [
    ...globalEvents,
    ...[...states.values()].flatMap((state) => state.events),
  ]);
  const has = events.some(({ causes }) => causes.some(({ time }) => time?.noneForMs));
  silences.set(purposes, has);
  return has;
}

const silences = new WeakMap<Profile['purposes'], boolean>();

/** What the rules see of measurements that are played: nobody waits for them, and they are stored already. */
const playedScope = {
  topic: '',
  arrivedTs: -Infinity,
  arrival: { ts: -Infinity, places: 0 },
  reject: () => undefined,
  stored: null,
  outcome: null,
} satisfies Partial<MessageScope>;

/** Nothing is refused: what is played was accepted. */
const openLimits: ApplyLimits = {
  maxAheadMs: Infinity,
  measurementMaxAgeMs: Infinity,
  eventMaxAgeMs: Infinity,
  ringMaxAgeMs: Infinity,
  rejectionsPerMessage: 0,
  rejectionBytesPerDevice: 0,
};

function contentOf(input: Exclude<DeviceInput, { kind: 'given' | 'tick' | 'break' }>) {
  switch (input.kind) {
    case 'answer':
      return { kind: 'profile-answer' as const, answer: input.body };
    case 'request':
      return { kind: 'profile-request' as const };
    case 'state':
      return { kind: 'state' as const, report: input.body };
    case 'configuration': {
      const senses = input.body.sIds.map((sId) => ({ sId }));
      const module = [{ moduleId: '', senses }];
      return { kind: 'configuration' as const, configuration: { device: {}, module } };
    }
    // Whatever the message was, it made the pending profile current.
    case 'current':
      return { kind: 'none' as const };
  }
}

function messageOf(arrivedTs: WallMs): Message {
  return {
    uplink: { topic: '', excerpt: '', arrivedTs, content: { kind: 'none' }, rejections: [] },
    delivery: { isWithdrawn: false, stored() {}, failed() {} },
    id: undefined,
    newUuid: () => '',
    rejectionsStored: 0,
    isPayloadStored: false,
    recorded: 0,
    open: 1,
    outcome: null,
  };
}

/** Whether the device is as it was read then. */
function isAs(
  { current, place, runtime: own }: DeviceState,
  read: { profile: Profile | null; runtime: Runtime | null; given: Given },
): boolean {
  const { profile, runtime, given } = read;
  if (current?.profile.pId !== given.current?.pId) return false;
  if (current?.engine !== given.current?.engine || !isSamePlace(place, given.place)) return false;
  if (!profile || !runtime || !own) return true;
  return encodeRuntime(profile, own) === encodeRuntime(profile, runtime);
}

function unknownDevice(device: DeviceIdentity): DeviceState {
  return {
    device,
    version: 0,
    senses: new Map(),
    arrival: null,
    place: { puId: 0, stId: 0 },
    placeTs: 0,
    reported: null,
    answersProfiles: false,
    current: null,
    pending: null,
    pendingTs: null,
    runtime: null,
    evidenceLog: null,
    dueTs: null,
    earliestDue: null,
    watched: new Map(),
    seen: CowArray.of<Newest>([]),
    clocks: null,
    remarked: null,
    given: { basis: '', isNoted: true, isKept: false },
    lateHour: null,
    waitingSenses: null,
    recentRejections: null,
  };
}
