import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { NewEvent } from '../../src/contract/event.ts';
import { newMessage } from '../../src/ingest/queue.ts';
import { noChanges } from '../../src/ingest/rules/model.ts';
import { createEventQuota } from '../../src/ingest/event-quota.ts';
import { type Plan, planBatch } from '../../src/ingest/plan.ts';
import { uplink } from './harness.ts';

/** A plan of one message of the account that records this many events. */
function planOf(accountId: number, count: number): Plan {
  const delivery = { isWithdrawn: false, stored() {}, failed() {} };
  const message = newMessage(uplink({ kind: 'none' }), delivery, randomUUID);
  const event = { type: 'sense', ts: 0, cause: { senses: [] } } as unknown as NewEvent['event'];
  const events = Array.from({ length: count }, (_, n) => ({
    accountId,
    deviceId: accountId,
    key: String(n),
    event,
  }));
  const limits = {
    maxAheadMs: 0,
    measurementMaxAgeMs: 0,
    eventMaxAgeMs: 0,
    ringMaxAgeMs: 0,
    rejectionsPerMessage: 10,
    rejectionBytesPerDevice: 1_048_576,
  };
  const plan = planBatch([], limits, 1);
  return { ...plan, rows: { ...noChanges(), events }, sources: [{ message, from: 0 }] };
}

const written = (recorded: NewEvent[]) => ({ recorded, opened: new Map<number, number>() });

/** A quota of this many events, today or at once. */
function quotaOf(today: number, now: number) {
  const counts = { measurements: 0, events: 0, leftOut: 0, moves: 0, alarms: 0, inputBytes: 0 };
  const quota = {
    eventsLeft: () => today - counts.events,
    eventsLeftNow: () => now - counts.events - counts.moves,
    eventsPerMessage: () => 1_000,
    count(_accountId: number, more: typeof counts) {
      counts.events += more.events;
      counts.leftOut += more.leftOut;
    },
  };
  const rule = createEventQuota(quota, { monotonicClock: Date.now, newUuid: randomUUID });
  return { rule, counts };
}

for (const [name, today, now] of [
  ['day', 100, Infinity],
  ['rate', Infinity, 100],
] as const) {
  test(`what is planned takes of the ${name} before it is committed`, () => {
    const { rule, counts } = quotaOf(today, now);
    const [first, second, third] = [planOf(1, 70), planOf(1, 70), planOf(1, 70)];
    const before = rule.dropBeyond(first, []);
    const behind = rule.dropBeyond(second, []);
    const last = rule.dropBeyond(third, []);
    expect([first, second, third].map(({ rows }) => rows.events.length)).toEqual([70, 30, 0]);
    rule.committed(first, written(first.rows.events), before);
    rule.committed(second, written(second.rows.events), behind);
    rule.committed(third, written(third.rows.events), last);
    expect(counts).toMatchObject({ events: 100, leftOut: 110 });
  });

  test(`what is not committed gives its part of the ${name} back`, () => {
    const { rule } = quotaOf(today, now);
    const failing = rule.dropBeyond(planOf(1, 90), []);
    rule.undo(failing, false);
    const again = planOf(1, 90);
    const leftOut = rule.dropBeyond(again, []);
    rule.committing(leftOut);
    rule.undo(leftOut, true);
    const whole = planOf(1, 100);
    rule.dropBeyond(whole, []);
    expect(whole.rows.events).toHaveLength(100);
  });
}

test('what one account has under way does not count for another', () => {
  const { rule } = quotaOf(100, 100);
  rule.dropBeyond(planOf(1, 100), []);
  const other = planOf(2, 100);
  rule.dropBeyond(other, []);
  expect(other.rows.events).toHaveLength(100);
});
