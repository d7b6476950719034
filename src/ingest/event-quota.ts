import { LRUCache } from 'lru-cache';
import type { NewEvent, RecordedEvent } from '../contract/event.ts';
import type { Rejection } from '../contract/uplink.ts';
import { bytesOfInput } from './keep-inputs.ts';
import type { Plan } from './plan.ts';
import { areTicks, type DeviceBatch } from './queue.ts';
import type { Message } from './rules/model.ts';
import type { Written } from './write.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

type EventCounts = {
  measurements: number;
  events: number;
  leftOut: number;
  moves: number;
  alarms: number;
  inputBytes: number;
};

const noCounts = (): EventCounts => ({
  measurements: 0,
  events: 0,
  leftOut: 0,
  moves: 0,
  alarms: 0,
  inputBytes: 0,
});

/** Counts what accounts send, and says how many more of their events may be recorded. */
export type EventQuotaOptions = EventLimits & {
  /**
   * Counts a commit. `events` are sense events, `moves` the other events, `alarms` those that opened, `inputBytes` what
   * is kept so that devices can be played again.
   */
  count(accountId: number, counts: EventCounts): void;
};

const reportEveryMs = 60_000;
const mostRemembered = 10_000;

/**
 * The events of a plan that are not recorded, the devices told so, how many events each message records, and what the
 * plan takes of each account's quotas until it is committed or given up.
 */
type LeftOut = {
  events: NewEvent[];
  reportedTo: number[];
  recorded: Map<Message, number>;
  taken: ReadonlyMap<number, UnderWay>;
};

export const noneLeftOut: LeftOut = {
  events: [],
  reportedTo: [],
  recorded: new Map(),
  taken: new Map(),
};

/** Applies the quota to plans. Only rows are left out: changes of state, push and SMS remain. */
export function createEventQuota(
  quota: EventQuotaOptions,
  { monotonicClock, newUuid }: { monotonicClock: MonotonicClock; newUuid: () => string },
) {
  const reportedMs = new LRUCache<number, number>({ max: mostRemembered });
  const underWay = createUnderWay();

  /** Removes the sense events beyond the quota from a plan, before it is written. */
  function dropBeyond(plan: Plan, deviceBatch: DeviceBatch[]): LeftOut {
    const { beyond: events, recorded, isDayOver } = takeBeyond(plan, quota, underWay.of);
    const taken = underWay.take(plan.rows.events);
    if (events.length === 0) return { events, reportedTo: [], recorded, taken };
    noteUnrecorded(plan, events);
    const counts = new Map<number, number>();
    for (const { deviceId } of events) counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
    const isDue = (deviceId: number) =>
      (reportedMs.get(deviceId) ?? -Infinity) + reportEveryMs <= monotonicClock();
    // A device is told only about events of its own messages.
    const due = deviceBatch.filter(({ queue, fragments }) => {
      const { deviceId } = queue.device;
      return counts.has(deviceId) && isDue(deviceId) && !areTicks(fragments);
    });
    for (const one of due) {
      const { deviceId, accountId } = one.queue.device;
      const usedUp = isDayOver.has(accountId) ? 'eventsPerDay' : 'eventsPerSecond';
      tellUnrecorded(plan, one, newUuid(), counts.get(deviceId) ?? 0, usedUp);
    }
    return { events, reportedTo: due.map(({ queue }) => queue.device.deviceId), recorded, taken };
  }

  /** The commit was sent: the rest of a split message is planned on top of it. */
  function committing({ recorded, reportedTo }: LeftOut): void {
    for (const [message, count] of recorded) message.recorded += count;
    for (const deviceId of reportedTo) reportedMs.set(deviceId, monotonicClock());
  }

  /** The plan was not committed, and is planned again. `wasCommitting`: whether `committing` was called. */
  function undo({ recorded, reportedTo, taken }: LeftOut, wasCommitting: boolean): void {
    underWay.refund(taken);
    if (!wasCommitting) return;
    for (const [message, count] of recorded) message.recorded -= count;
    for (const deviceId of reportedTo) reportedMs.delete(deviceId);
  }

  /** Counts what was committed. */
  function committed(
    { deviceBatches: deviceBatch, rows: { inputs } }: Plan,
    written: Pick<Written, 'recorded' | 'opened'>,
    { events, taken }: LeftOut,
  ): void {
    if (taken.size > 0) underWay.refund(taken);
    const counts = new Map<number, EventCounts>();
    let last = -1;
    let its: EventCounts | undefined;
    const of = (accountId: number) => {
      if (its && accountId === last) return its;
      last = accountId;
      its = counts.get(accountId) ?? noCounts();
      counts.set(accountId, its);
      return its;
    };
    for (const { queue, fragments } of deviceBatch)
      for (const { content, size } of fragments)
        if (content.kind === 'measurements') of(queue.accountId).measurements += size;
    for (const { accountId, event } of written.recorded)
      of(accountId)[event.type === 'sense' ? 'events' : 'moves'] += 1;
    for (const { accountId } of events) of(accountId).leftOut += 1;
    if (inputs.length > 0) {
      const owners = new Map(
        deviceBatch.map(({ queue }) => [queue.device.deviceId, queue.accountId]),
      );
      for (const input of inputs) {
        const accountId = owners.get(input.deviceId);
        if (accountId !== undefined) of(accountId).inputBytes += bytesOfInput(input);
      }
    }
    for (const [accountId, count] of written.opened) of(accountId).alarms += count;
    for (const [accountId, sums] of counts) quota.count(accountId, sums);
  }

  return { dropBeyond, committing, undo, committed };
}

export type EventQuotaFilter = ReturnType<typeof createEventQuota>;

/** Sense events and changes of state that are planned but not committed. */
type UnderWay = { events: number; moves: number };

const nothing: UnderWay = { events: 0, moves: 0 };

/** What transactions under way will record, by account. It counts against the quota before the commit. */
type EventsUnderWay = {
  of(accountId: number): UnderWay;
  /** Adds the events. Returns what was added, to pass to `refund` once they are committed or never will be. */
  take(events: NewEvent[]): ReadonlyMap<number, UnderWay>;
  refund(taken: ReadonlyMap<number, UnderWay>): void;
};

function createUnderWay(): EventsUnderWay {
  const sums = new Map<number, UnderWay>();
  return {
    of: (accountId) => sums.get(accountId) ?? nothing,
    take(events) {
      const taken = sumUp(events);
      for (const [accountId, its] of taken) change(sums, accountId, its, 1);
      return taken;
    },
    refund(taken) {
      for (const [accountId, its] of taken) change(sums, accountId, its, -1);
    },
  };
}

function sumUp(events: NewEvent[]): Map<number, UnderWay> {
  const taken = new Map<number, UnderWay>();
  for (const { accountId, event } of events) {
    const its = taken.get(accountId) ?? { ...nothing };
    its[event.type === 'sense' ? 'events' : 'moves'] += 1;
    taken.set(accountId, its);
  }
  return taken;
}

function change(
  sums: Map<number, UnderWay>,
  accountId: number,
  { events, moves }: UnderWay,
  sign: 1 | -1,
): void {
  const before = sums.get(accountId) ?? nothing;
  const after = { events: before.events + sign * events, moves: before.moves + sign * moves };
  if (after.events === 0 && after.moves === 0) sums.delete(accountId);
  else sums.set(accountId, after);
}

/** How many more events of an account may be recorded. */
type EventLimits = {
  /** Today (UTC), of `eventsPerDay`. Uncommitted events are not counted. */
  eventsLeft(accountId: number): number;
  /** Now, of `eventsPerSecond`, which includes changes of state. Uncommitted events are not counted. */
  eventsLeftNow(accountId: number): number;
  /** How many events one message may record. */
  eventsPerMessage(accountId: number): number;
};

type Beyond = {
  beyond: NewEvent[];
  recorded: Map<Message, number>;
  /** Accounts whose daily quota was used up. */
  isDayOver: Set<number>;
};

/** Removes the sense events beyond the quota from a plan. */
function takeBeyond(
  { rows, sources }: Plan,
  quota: EventLimits,
  underWayOf: (accountId: number) => UnderWay,
): Beyond {
  const left = new Map<number, { today: number; now: number }>();
  const leftOf = (accountId: number) => {
    const known = left.get(accountId);
    if (known) return known;
    const { events, moves } = underWayOf(accountId);
    const its = {
      today: quota.eventsLeft(accountId) - events,
      now: quota.eventsLeftNow(accountId) - events - moves,
    };
    left.set(accountId, its);
    return its;
  };
  const result: Beyond = { beyond: [], recorded: new Map(), isDayOver: new Set() };
  const { beyond, recorded, isDayOver } = result;
  for (const [n, { message, from }] of sources.entries()) {
    const end = sources[n + 1]?.from ?? rows.events.length;
    for (let place = from; place < end; place += 1) {
      const event = rows.events[place] as NewEvent;
      const { accountId } = event;
      const its = leftOf(accountId);
      if (event.event.type !== 'sense') {
        its.now -= 1;
        continue;
      }
      const before = message ? (recorded.get(message) ?? 0) + message.recorded : 0;
      const isTooMany = its.now <= 0 || before >= quota.eventsPerMessage(accountId);
      if (its.today <= 0) isDayOver.add(accountId);
      if (its.today <= 0 || isTooMany || message?.uplink.leavesEventsOut) beyond.push(event);
      else {
        its.today -= 1;
        its.now -= 1;
        if (message) recorded.set(message, (recorded.get(message) ?? 0) + 1);
      }
    }
  }
  if (beyond.length > 0) {
    const out = new Set(beyond);
    rows.events = rows.events.filter((event) => !out.has(event));
  }
  return result;
}

/** Marks the signals of these events as unrecorded. Alarms are decided nevertheless. */
function noteUnrecorded({ rows }: Plan, events: NewEvent[]): void {
  if (rows.signals.length === 0) return;
  const out = new Set<RecordedEvent>(events.map(({ event }) => event));
  rows.signals = rows.signals.map((one) =>
    one.kind === 'fired' && out.has(one.event) ? { ...one, isRecorded: false } : one,
  );
}

type UsedUp = 'eventsPerDay' | 'eventsPerSecond';

const until: Record<UsedUp, string> = {
  eventsPerDay: ', and no further ones will be today (UTC)',
  eventsPerSecond: ', because too many came at once',
};

/** Tells a device how many events of its own messages were not recorded. */
function tellUnrecorded(
  { rows }: Plan,
  { queue, fragments }: DeviceBatch,
  messageId: string,
  count: number,
  quota: UsedUp,
): void {
  const { deviceId, uuid } = queue.device;
  const { topic, arrivedTs: ts } = fragments[0]?.message.uplink ?? { topic: '', arrivedTs: 0 };
  const rejection: Rejection = {
    reason: 'events-not-recorded',
    message:
      `The account's quota ${quota} is used up: ${count} events of this device were not ` +
      `recorded${until[quota]}. Reported once a minute.`,
  };
  const row = { messageId, item: -1, payload: '', ts, topic };
  rows.rejections.push({ ...rejection, ...row, deviceId });
  const payload = { topic, ...rejection, ts };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
}
