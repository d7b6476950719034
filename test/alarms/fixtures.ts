import { Actions, type NotifyResult } from '../../src/contract/actions.ts';
import type { AlarmSignal, FiredSignal } from '../../src/contract/alarm.ts';
import type { SenseEvent } from '../../src/contract/event.ts';
import {
  type Alarm,
  beginDraft,
  decide,
  type DeviceBefore,
  type PlannedAsk,
  settle,
} from '../../src/alarms/rules.ts';

export const minute = 60_000;
export const start = Date.UTC(2026, 10, 23, 9);
const device = { deviceId: 1, uuid: '0f8fad5b-d9cb-469f-a165-70867728950e', accountId: 7 };
/** An event of a state that is not global, in purpose 1. */
export const of = { puId: 1, stId: 1, evId: 1 };
export const cold = { puId: 1, stId: 1 };
export const warm = { puId: 1, stId: 2 };

const options = { ringMaxAgeMs: 15 * minute, reportedForMs: 60 * minute };

export const reached: NotifyResult = { queued: 1, planned: 0, notNotified: null };
export const unreached: NotifyResult = { queued: 0, planned: 0, notNotified: 'no-recipient' };

type Members = Partial<Omit<FiredSignal, 'kind' | 'actions'>> & {
  atMs?: number;
  actions?: object;
};

/** A fresh firing, the first of its episode, of an event that notifies people. */
export function fired({ atMs = 0, actions = {}, ...members }: Members = {}): AlarmSignal {
  const ts = start + atMs;
  const of_ = members.of ?? of;
  const event: SenseEvent = {
    type: 'sense',
    ts,
    cause: { engine: { pId: 'p', ...of_, ts }, senses: [{ sId: '0x01', val: 9, ts }] },
  };
  return {
    kind: 'fired',
    device,
    arrivedTs: ts,
    of: of_,
    pId: 'p',
    event,
    name: 'too warm',
    stateName: 'cold',
    purposeName: 'freezer',
    actions: Actions.parse({ cloud: { sendPush: true }, ...actions }),
    tells: 'alarm',
    isFirst: true,
    began: { ts, arrivedTs: ts },
    isFresh: true,
    isGlobal: false,
    isRecorded: true,
    sIds: ['0x01'],
    conditions: [],
    from: cold,
    movedTo: null,
    ...members,
  };
}

type Without<S> = S extends { kind: 'fired' } ? never : Omit<S, 'device' | 'arrivedTs'>;
/** Any other signal. */
export function signal(given: Without<AlarmSignal>, atMs = 0): AlarmSignal {
  return { device, arrivedTs: start + atMs, ...given };
}

export const ended = (atMs = 0, ts = start + atMs) => signal({ kind: 'ended', of: [of], ts }, atMs);
export const moved = (from: typeof cold, to: typeof cold, isReport = false, atMs = 0) =>
  signal({ kind: 'moved', from, to, isReport, ts: start + atMs }, atMs);

/** One device as its rows would store it, with one transaction for each call of `take`. */
export class Device {
  before: DeviceBefore = { open: [], lasting: [], snoozes: [], mute: null, carried: null };
  closed: Alarm[] = [];
  asks: PlannedAsk[] = [];
  /** The result of asks from now on. */
  answer: NotifyResult = reached;

  /** Returns what the events of firings record: `told`, or the reason why not; null if nothing. */
  take(...signals: AlarmSignal[]): (string | null)[] {
    const nowTs = Math.max(...signals.map(({ arrivedTs }) => arrivedTs));
    const at = { options, nowTs, asks: [] as PlannedAsk[] };
    const draft = beginDraft(this.before, at);
    for (const one of signals) decide(draft, one);
    const told = at.asks.map(() => this.answer);
    settle(at.asks, told, draft.verdicts, at);
    this.asks.push(...at.asks);
    this.closed.push(...draft.closed.map(({ alarm }) => alarm));
    const snoozes = draft.isProfileOver ? [] : this.before.snoozes;
    const carried = draft.isProfileOver ? null : this.before.carried;
    const open = [...draft.open.values()].map(({ alarm }) => alarm);
    this.before = { ...this.before, open, snoozes, carried };
    return signals.flatMap((one) => (one.kind === 'fired' ? [saidBy(one.event)] : []));
  }

  /** Its only open alarm. */
  get alarm(): Alarm {
    const [alarm, ...others] = this.before.open;
    if (!alarm || others.length > 0) throw new Error(`There are ${this.before.open.length}.`);
    return alarm;
  }

  get isOpen(): boolean {
    return this.before.open.length > 0;
  }

  get closings() {
    return this.closed.map(({ closedBy }) => closedBy);
  }
}

function saidBy({ notified, notNotified }: SenseEvent): string | null {
  if (notified === undefined) return null;
  return notified ? 'told' : (notNotified ?? 'not told');
}
