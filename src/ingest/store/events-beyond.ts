import type { NewEvent, RecordedEvent } from '../../contract/event.ts';
import type { Message } from '../rules/message.ts';
import type { UnderWay } from './events-under-way.ts';
import type { Plan } from './plan.ts';

/** How many more events of an account may be recorded. */
export type EventLimits = {
  /** Today (UTC), of `eventsPerDay`; what is not committed yet is not counted. */
  eventsLeft(accountId: number): number;
  /** Now, of `eventsPerSecond`, with changes of state; what is not committed yet is not counted. */
  eventsLeftNow(accountId: number): number;
  /** Of one message. */
  eventsPerMessage(accountId: number): number;
};

export type Beyond = {
  beyond: NewEvent[];
  recorded: Map<Message, number>;
  /** Accounts for whose events the day was over. */
  isDayOver: Set<number>;
};

/** Takes the sense events beyond the quota out of a plan. */
export function takeBeyond(
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

/** Alarms are decided all the same. */
export function noteUnrecorded({ rows }: Plan, events: NewEvent[]): void {
  if (rows.signals.length === 0) return;
  const out = new Set<RecordedEvent>(events.map(({ event }) => event));
  rows.signals = rows.signals.map((one) =>
    one.kind === 'fired' && out.has(one.event) ? { ...one, isRecorded: false } : one,
  );
}
