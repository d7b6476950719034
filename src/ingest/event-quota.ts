import { LRUCache } from 'lru-cache';
import type { NewEvent } from '../contract/event.ts';
import { areTicks, type Work } from './queue/device-queue.ts';
import type { Message } from './rules/message.ts';
import { type EventLimits, noteUnrecorded, takeBeyond } from './store/events-beyond.ts';
import { createUnderWay, type UnderWay } from './store/events-under-way.ts';
import type { Plan } from './store/plan.ts';
import { tellUnrecorded } from './store/tell-unrecorded.ts';
import type { Written } from './store/write.ts';

export type EventCounts = {
  measurements: number;
  events: number;
  leftOut: number;
  moves: number;
  alarms: number;
};

const noCounts = (): EventCounts => ({
  measurements: 0,
  events: 0,
  leftOut: 0,
  moves: 0,
  alarms: 0,
});

/** Counts what accounts bring, and says how many more of their events may be recorded. */
export type EventQuotaOptions = EventLimits & {
  /** Of a commit; `events` are sense events, `moves` the others, `alarms` those that opened. */
  count(accountId: number, counts: EventCounts): void;
};

const tellEveryMs = 60_000;
const mostRemembered = 10_000;

/**
 * Those of a plan that are not recorded, the devices that are told so, what each message records, and what
 * the plan takes of each account's quotas until it is committed or given up.
 */
export type LeftOut = {
  events: NewEvent[];
  told: number[];
  recorded: Map<Message, number>;
  taken: ReadonlyMap<number, UnderWay>;
};

export const noneLeftOut: LeftOut = {
  events: [],
  told: [],
  recorded: new Map(),
  taken: new Map(),
};

/** Holds plans to the quota. What is left out of one are rows only: moves, push and SMS stay. */
export function createEventQuota(
  quota: EventQuotaOptions,
  { nowMs, newUuid }: { nowMs: () => number; newUuid: () => string },
) {
  const toldMs = new LRUCache<number, number>({ max: mostRemembered });
  const underWay = createUnderWay();

  /** Takes the sense events beyond the quota out of a plan, before it is written. */
  function dropBeyond(plan: Plan, work: Work[]): LeftOut {
    const { beyond: events, recorded, isDayOver } = takeBeyond(plan, quota, underWay.of);
    const taken = underWay.take(plan.rows.events);
    if (events.length === 0) return { events, told: [], recorded, taken };
    noteUnrecorded(plan, events);
    const counts = new Map<number, number>();
    for (const { deviceId } of events) counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
    const isDue = (deviceId: number) =>
      (toldMs.get(deviceId) ?? -Infinity) + tellEveryMs <= nowMs();
    // A device is told of what its own messages led to.
    const due = work.filter(({ queue, units }) => {
      const { deviceId } = queue.device;
      return counts.has(deviceId) && isDue(deviceId) && !areTicks(units);
    });
    for (const one of due) {
      const { deviceId, accountId } = one.queue.device;
      const usedUp = isDayOver.has(accountId) ? 'eventsPerDay' : 'eventsPerSecond';
      tellUnrecorded(plan, one, newUuid(), counts.get(deviceId) ?? 0, usedUp);
    }
    return { events, told: due.map(({ queue }) => queue.device.deviceId), recorded, taken };
  }

  /** What follows of a message that was cut is planned on top of what is being committed. */
  function committing({ recorded, told }: LeftOut): void {
    for (const [message, count] of recorded) message.recorded += count;
    for (const deviceId of told) toldMs.set(deviceId, nowMs());
  }

  /** It was not committed, and is planned again. `wasCommitting`: `committing` was told of it. */
  function undo({ recorded, told, taken }: LeftOut, wasCommitting: boolean): void {
    underWay.giveBack(taken);
    if (!wasCommitting) return;
    for (const [message, count] of recorded) message.recorded -= count;
    for (const deviceId of told) toldMs.delete(deviceId);
  }

  /** Counts what was committed. */
  function committed(
    work: Work[],
    written: Pick<Written, 'recorded' | 'opened'>,
    { events, taken }: LeftOut,
  ): void {
    if (taken.size > 0) underWay.giveBack(taken);
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
    for (const { queue, units } of work)
      for (const { content, size } of units)
        if (content.kind === 'measurements') of(queue.accountId).measurements += size;
    for (const { accountId, event } of written.recorded)
      of(accountId)[event.type === 'sense' ? 'events' : 'moves'] += 1;
    for (const { accountId } of events) of(accountId).leftOut += 1;
    for (const [accountId, count] of written.opened) of(accountId).alarms += count;
    for (const [accountId, sums] of counts) quota.count(accountId, sums);
  }

  return { dropBeyond, committing, undo, committed };
}

export type EventQuotaFilter = ReturnType<typeof createEventQuota>;
