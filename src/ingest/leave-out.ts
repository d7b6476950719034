import { randomUUID } from 'node:crypto';
import type { NewEvent } from '../core/event.ts';
import type { Rejection } from '../core/rejection.ts';
import { sizeOf } from './entry.ts';
import type { Work } from './lane.ts';
import type { Plan } from './plan.ts';

/** Counts what accounts bring, and says how many more of their events may be recorded today. */
export type EventQuota = {
  eventsLeft(accountId: number): number;
  count(accountId: number, counts: { measurements: number; events: number; leftOut: number }): void;
};

const tellEveryMs = 60_000;
const mostRemembered = 10_000;

/** Those of a plan that are not recorded, and the devices that are told so. */
export type LeftOut = { events: NewEvent[]; told: number[] };

/** Holds plans to the quota. What is left out of one are rows only: moves, push and SMS stay. */
export function createLeaveOut(quota: EventQuota, nowMs: () => number = () => performance.now()) {
  const toldMs = new Map<number, number>();

  /** Takes the sense events beyond the quota out of a plan, before it is written. */
  function apply(plan: Plan, work: Work[]): LeftOut {
    const events = takeBeyond(plan, quota);
    if (events.length === 0) return { events, told: [] };
    ringAnyway(plan, events);
    const counts = new Map<number, number>();
    for (const { deviceId } of events) counts.set(deviceId, (counts.get(deviceId) ?? 0) + 1);
    const isDue = (deviceId: number) =>
      (toldMs.get(deviceId) ?? -Infinity) + tellEveryMs <= nowMs();
    const due = work.filter(({ lane }) => {
      const { deviceId } = lane.device;
      return counts.has(deviceId) && isDue(deviceId);
    });
    for (const one of due) tell(plan, one, counts.get(one.lane.device.deviceId) ?? 0);
    return { events, told: due.map(({ lane }) => lane.device.deviceId) };
  }

  /** Counts what was committed. */
  function committed(work: Work[], recorded: NewEvent[], { events, told }: LeftOut): void {
    for (const { lane, units } of work) {
      let measurements = 0;
      for (const { content } of units)
        if (content.kind === 'measurements') measurements += sizeOf(content);
      if (measurements > 0)
        quota.count(lane.device.accountId, { measurements, events: 0, leftOut: 0 });
    }
    for (const { accountId, event } of recorded)
      if (event.type === 'sense')
        quota.count(accountId, { measurements: 0, events: 1, leftOut: 0 });
    for (const { accountId } of events)
      quota.count(accountId, { measurements: 0, events: 0, leftOut: 1 });
    if (toldMs.size > mostRemembered) toldMs.clear();
    for (const deviceId of told) toldMs.set(deviceId, nowMs());
  }

  return { apply, committed };
}

export type LeaveOut = ReturnType<typeof createLeaveOut>;

function takeBeyond({ rows }: Plan, quota: EventQuota): NewEvent[] {
  const left = new Map<number, number>();
  const beyond: NewEvent[] = [];
  for (const event of rows.events) {
    if (event.event.type !== 'sense') continue;
    const more = left.get(event.accountId) ?? quota.eventsLeft(event.accountId);
    if (more <= 0) beyond.push(event);
    left.set(event.accountId, more - 1);
  }
  if (beyond.length > 0) {
    const out = new Set(beyond);
    rows.events = rows.events.filter((event) => !out.has(event));
  }
  return beyond;
}

/** A reported event rings where its row is new; without a row a redelivery rings again. */
function ringAnyway({ rows }: Plan, events: NewEvent[]): void {
  const out = new Set(events.map(({ event }) => event));
  rows.rings = rows.rings.map((ring) => (out.has(ring.event) ? { ...ring, key: undefined } : ring));
}

function tell({ rows }: Plan, { lane, units }: Work, count: number): void {
  const { deviceId, uuid } = lane.device;
  const { topic, arrivedTs: ts } = units[0]?.entry.uplink ?? { topic: '', arrivedTs: 0 };
  const rejection: Rejection = {
    reason: 'events-not-recorded',
    message: `The account's quota eventsPerDay is used up: ${count} events of this device were not recorded, nor are further ones today (UTC). This is said once a minute.`,
  };
  const row = { messageId: randomUUID(), item: -1, payload: '', ts, topic };
  rows.rejections.push({ ...rejection, ...row, deviceId });
  const payload = { topic, ...rejection, ts };
  rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
}
