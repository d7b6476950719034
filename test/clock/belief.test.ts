import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeReading, reckon, type Belief, type SharedBelief } from '../../src/clock/belief.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const noon = 1_700_000_000_000;
/** How far ahead a clock may be if nothing counted the time. */
const awayMs = 2 * day;

/** Processes that check one clock every ten seconds, and share the row. */
class World {
  ts = noon;
  monotonicMs = 1_000;
  suspendedMs = 0;
  shared: SharedBelief | null = null;
  isUnwritable = false;
  readonly beliefs = new Map<string, Belief>();
  readonly changes: string[] = [];

  look(name = 'one'): void {
    const { ts, monotonicMs, suspendedMs, shared } = this;
    const { belief, write, change } = judgeReading(this.beliefs.get(name) ?? null, {
      ts,
      monotonicMs,
      suspendedMs,
      shared,
    });
    this.beliefs.set(name, belief);
    if (change) this.changes.push(`${name} ${change.to} ${change.reason}`);
    if (write && !this.isUnwritable) this.#write(write);
  }

  /** Does what believed-time.ts does in SQL; test/clock/believed-time.test.ts compares them. */
  #write({ kind, shared }: NonNullable<ReturnType<typeof judgeReading>['write']>): void {
    const row = this.shared;
    if (row === null || kind === 'believe') this.shared = shared;
    else if (kind === 'doubt')
      this.shared = { ...row, doubtedTs: row.doubtedTs ?? shared.doubtedTs };
    else if ((row.doubtedTs === null) === (shared.doubtedTs === null))
      this.shared = { ...row, reckonedTs: Math.max(row.reckonedTs, shared.reckonedTs) };
  }

  /** Lets time pass, in which each of the processes checks every ten seconds. */
  pass(ms: number, names: string[] = ['one']): void {
    for (let passed = 0; passed < ms; passed += 10_000) {
      const stepMs = Math.min(10_000, ms - passed);
      this.ts += stepMs;
      this.monotonicMs += stepMs;
      for (const name of names) this.look(name);
    }
  }

  isDoubted(name = 'one'): boolean {
    return this.beliefs.get(name)?.isDoubted === true;
  }
}

const started = (): World => {
  const world = new World();
  world.look();
  world.pass(5 * minute);
  expect(world.isDoubted()).toBe(false);
  return world;
};

test('the first check of a new database believes the clock as it is', () => {
  const world = new World();
  world.look();
  expect(world.beliefs.get('one')).toMatchObject({ isDoubted: false });
  expect(world.shared).toEqual({ reckonedTs: noon, doubtedTs: null });
});

test('the progress of time is written each minute', () => {
  const world = started();
  expect(world.shared?.reckonedTs).toBeGreaterThan(world.ts - minute - 1);
  expect(world.changes).toEqual([]);
});

describe.each([
  { what: 'a second', byMs: 1_000, isDoubted: false },
  { what: 'two seconds back', byMs: -2_000, isDoubted: false },
  { what: 'three seconds', byMs: 3_000, isDoubted: true },
  { what: 'an hour back', byMs: -hour, isDoubted: true },
  { what: 'an hour', byMs: hour, isDoubted: true },
  { what: 'a year', byMs: 365 * day, isDoubted: true },
])('set by $what', ({ byMs, isDoubted }) => {
  test('while the process runs', () => {
    const world = started();
    world.ts += byMs;
    world.pass(10_000);
    expect(world.isDoubted()).toBe(isDoubted);
    expect(world.shared?.doubtedTs === null).toBe(!isDoubted);
    // Right again.
    world.ts -= byMs;
    world.pass(10_000);
    expect(world.isDoubted()).toBe(false);
    expect(world.shared?.doubtedTs).toBe(null);
  });
});

test.each([
  { what: 'two days', byMs: 2 * day - minute, isDoubted: false },
  { what: 'more than two days', byMs: 2 * day + minute, isDoubted: true },
  { what: 'an hour back', byMs: -hour, isDoubted: true },
  { what: 'a year ahead', byMs: 365 * day, isDoubted: true },
])('$what since it was last believed, at a start', ({ byMs, isDoubted }) => {
  const world = started();
  world.ts += byMs;
  world.look('other');
  expect(world.isDoubted('other')).toBe(isDoubted);
});

test.each([
  { what: 'a night', awayMs: 8 * hour, isDoubted: false },
  { what: 'a week', awayMs: 7 * day, isDoubted: true },
])('a machine that was suspended for $what', ({ awayMs, isDoubted }) => {
  const world = started();
  world.ts += awayMs;
  world.suspendedMs += awayMs;
  world.pass(10_000);
  expect(world.isDoubted()).toBe(isDoubted);
});

test('a clock set back while the machine was suspended is in doubt', () => {
  const world = started();
  world.suspendedMs += hour;
  world.ts -= hour;
  world.pass(10_000);
  expect(world.isDoubted()).toBe(true);
});

test.each([
  { what: 'an hour back', byMs: -hour, isBelieved: true },
  { what: 'a year back', byMs: -365 * day, isBelieved: true },
  { what: 'a day ahead', byMs: day, isBelieved: true },
  { what: 'three days ahead', byMs: 3 * day, isBelieved: false },
])('$what, it is believed after an hour: $isBelieved', ({ byMs, isBelieved }) => {
  const world = started();
  world.ts += byMs;
  world.pass(hour);
  expect(world.isDoubted()).toBe(true);
  world.pass(20_000);
  expect(world.isDoubted()).toBe(!isBelieved);
  world.pass(2 * day);
  expect(world.isDoubted()).toBe(!isBelieved);
});

test('the hour begins anew each time the clock is set', () => {
  const world = started();
  world.ts += hour;
  world.pass(50 * minute);
  world.ts += 3_000;
  world.pass(50 * minute);
  expect(world.isDoubted()).toBe(true);
  world.pass(11 * minute);
  expect(world.isDoubted()).toBe(false);
  expect(world.changes).toEqual(['one doubted leap', 'one believed steady']);
});

test('the operator can say that it is right, however far ahead it is', () => {
  const world = started();
  world.ts += 365 * day;
  world.pass(minute);
  expect(world.isDoubted()).toBe(true);
  world.shared = { reckonedTs: world.ts, doubtedTs: null };
  world.pass(10_000);
  expect(world.changes).toEqual(['one doubted leap', 'one believed shared']);
});

test('what the operator said of one time does not apply to the next', () => {
  const world = started();
  world.ts += 365 * day;
  world.pass(minute);
  world.shared = { reckonedTs: world.ts, doubtedTs: null };
  world.ts += 365 * day;
  world.pass(10_000);
  expect(world.isDoubted()).toBe(true);
  expect(world.shared?.doubtedTs).not.toBe(null);
});

test('a process that starts meanwhile is in doubt too, even if it would believe', () => {
  const world = started();
  world.ts += day;
  world.pass(10_000);
  world.look('late');
  expect(world.isDoubted('late')).toBe(true);
  world.pass(50 * minute, ['one', 'late']);
  // It starts anew, and so does its hour.
  world.look('later');
  world.beliefs.delete('one');
  world.beliefs.delete('late');
  world.pass(hour - minute, ['later']);
  expect(world.isDoubted('later')).toBe(true);
  world.pass(2 * minute, ['later']);
  expect(world.isDoubted('later')).toBe(false);
});

test("a process that does not know yet cannot end another's doubt", () => {
  const world = started();
  world.look('other');
  world.ts += hour;
  world.look('one');
  // By a reading from before.
  world.ts -= hour;
  world.pass(10_000, ['other']);
  expect(world.isDoubted('other')).toBe(true);
  expect(world.changes).toContain('other doubted shared');
});

test("a doubt that could not be written is not ended by the row's earlier content", () => {
  const world = started();
  world.isUnwritable = true;
  world.ts += 30_000;
  world.pass(minute);
  expect(world.isDoubted()).toBe(true);
  world.isUnwritable = false;
  world.pass(10_000);
  expect(world.shared?.doubtedTs).not.toBe(null);
});

test('all processes are right again with the clock', () => {
  const world = started();
  world.look('other');
  world.ts += 365 * day;
  world.pass(5 * minute, ['one', 'other']);
  world.ts -= 365 * day;
  world.pass(10_000, ['one', 'other']);
  expect([world.isDoubted('one'), world.isDoubted('other')]).toEqual([false, false]);
});

test('whatever happens, nobody believes a clock more than two days ahead without the operator', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 2 * hour }) }),
    fc.record({
      kind: fc.constant('set' as const),
      ms: fc.integer({ min: -3 * day, max: 30 * day }),
    }),
    fc.record({ kind: fc.constant('start' as const), ms: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const world = started();
      /** How far ahead of the time that has passed the clock may have been believed. */
      let trusted = 0;
      let ahead = 0;
      for (const { kind, ms } of steps) {
        if (kind === 'pass') world.pass(ms);
        else if (kind === 'set') ahead += ms;
        if (kind === 'set') world.ts += ms;
        else if (kind === 'start') {
          world.beliefs.delete('one');
          world.look();
        }
        world.pass(10_000);
        if (!world.isDoubted()) {
          expect(ahead - trusted).toBeLessThanOrEqual(awayMs + 2 * minute);
          trusted = ahead;
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('the time where the clock should be runs on with the monotonic clock', () => {
  const world = started();
  const rightTs = world.ts;
  world.ts += 365 * day;
  world.pass(5 * minute);
  expect(reckon(world.beliefs.get('one') as Belief, world.monotonicMs)).toBe(rightTs + 5 * minute);
});
