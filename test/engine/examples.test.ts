import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { Evaluated } from '../../src/engine/compile.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { profileOf } from './samples.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 23, 8);

/** A value, and the minute in which it is measured and arrives. */
type Value = [atMinute: number, val: number];

/** A firing of an example, and its minute. */
type Fired = { at: number; name: string; tells: string; isFirst: boolean };

/** Installs an example of examples/ at minute 0, then lets these values arrive and time pass until the last minute. */
function play(file: string, sId: string, values: Value[], until: number) {
  const text = readFileSync(new URL(`../../examples/${file}.json`, import.meta.url), 'utf8');
  const profile = profileOf(Purpose.parse(JSON.parse(text)));
  const evaluator = new Evaluator(profile, startRuntime(profile, start));
  const fired: Fired[] = [];
  const moves: number[] = [];
  const take = (outcomes: readonly Evaluated[]) => {
    for (const { firings, transition } of outcomes) {
      for (const { event, name, tells, isFirst } of firings)
        fired.push({ at: (event.ts - start) / minute, name, tells, isFirst });
      if (transition) moves.push(transition.to.stId);
    }
  };
  for (const [at, val] of values) {
    const ts = start + at * minute;
    const moment = { t: ts, arrivedTs: ts };
    take(evaluator.ticksUntil(ts));
    take(evaluator.ticksForcedBy(sId, moment));
    take([evaluator.measure({ sId, val, ts }, moment, true)]);
  }
  take(evaluator.ticksUntil(start + until * minute));
  return { fired, moves, rings: fired.filter(({ isFirst }) => isFirst) };
}

/** One value a minute, from one minute to another. */
function eachMinute(from: number, to: number, valueAt: (at: number) => number): Value[] {
  return Array.from({ length: to - from + 1 }, (_, i) => [from + i, valueAt(from + i)]);
}

const temperature = '0x10';
const level = '0x30';

describe('examples/freezer.json', () => {
  const freezer = (values: Value[], until: number) => play('freezer', temperature, values, until);

  test('rings once after ten warm minutes, however long it stays warm', () => {
    const { rings, fired } = freezer(
      eachMinute(0, 90, () => -9),
      90,
    );
    expect(rings).toEqual([{ at: 10, name: 'too warm', tells: 'alarm', isFirst: true }]);
    expect(fired.length).toBeGreaterThan(1);
  });

  test('does not ring for a door that is open for nine minutes, again and again', () => {
    const values = eachMinute(0, 120, (at) => (at % 20 < 10 ? -9 : -18));
    expect(freezer(values, 120).fired).toEqual([]);
  });

  test('rings again after it was cold', () => {
    const values = eachMinute(0, 60, (at) => (at === 30 ? -18 : -9));
    expect(freezer(values, 60).rings.map(({ at }) => at)).toEqual([10, 41]);
  });

  test('rings for a warm value that nothing follows, and half an hour later for the silence', () => {
    expect(freezer([[5, -9]], 120).rings).toEqual([
      { at: 15, name: 'too warm', tells: 'alarm', isFirst: true },
      { at: 35, name: 'nothing heard', tells: 'alarm', isFirst: true },
    ]);
  });

  test('rings for a thermometer that never reports', () => {
    expect(freezer([], 120).rings).toEqual([
      { at: 30, name: 'nothing heard', tells: 'alarm', isFirst: true },
    ]);
  });

  test('is quiet while it is cold and reporting', () => {
    const values = Array.from({ length: 48 }, (_, i): Value => [i * 29, -18]);
    expect(freezer(values, 47 * 29 + 29).fired).toEqual([]);
  });
});

describe('examples/silent-sensor.json', () => {
  test('rings when the sensor falls silent, and announces when it reports again', () => {
    const { fired, moves } = play(
      'silent-sensor',
      temperature,
      [
        [5, 1],
        [60, 1],
        [61, 1],
      ],
      70,
    );
    expect(fired).toEqual([
      { at: 20, name: 'silent', tells: 'alarm', isFirst: true },
      { at: 60, name: 'heard again', tells: 'notice', isFirst: true },
    ]);
    expect(moves).toEqual([2, 1]);
  });
});

describe('examples/leaking-tank.json', () => {
  const tank = (values: Value[], until: number) => play('leaking-tank', level, values, until).rings;

  test('rings once per leak, for a tank that is measured each minute', () => {
    // Two leaks of a unit every five minutes, a night apart.
    const fallen = (at: number, from: number) => Math.min(20, Math.max(0, (at - from) / 5));
    const values = eachMinute(0, 900, (at) => 100 - fallen(at, 120) - fallen(at, 700));
    const rings = tank(values, 900);
    expect(rings.map(({ name }) => name)).toEqual(['leaking', 'leaking']);
    expect(rings[0]?.at).toBeGreaterThan(120);
    expect(rings[0]?.at).toBeLessThan(180);
    expect(rings[1]?.at).toBeGreaterThan(700);
  });

  test('rings once per leak, for a tank that reports a level only if it changed', () => {
    const leak = Array.from({ length: 20 }, (_, i): Value => [600 + 5 * i, 99 - i]);
    const rings = tank([[0, 100], ...leak], 1_000);
    expect(rings).toHaveLength(1);
    expect(rings[0]?.at).toBeLessThan(660);
  });

  test('is quiet during normal use and refilling', () => {
    const values = eachMinute(0, 1_440, (at) => (at < 720 ? 100 - at / 15 : 100 - (at - 720) / 15));
    expect(tank(values, 1_440)).toEqual([]);
  });
});

describe('examples/cold-room.json', () => {
  test('opens one alarm while it is warm, and notifies nobody', () => {
    const values = eachMinute(0, 60, (at) => (at < 10 || at > 40 ? 4 : 9));
    const { fired, moves } = play('cold-room', temperature, values, 60);
    expect(fired).toEqual([
      { at: 11, name: 'too warm', tells: 'silent-alarm', isFirst: true },
      { at: 42, name: 'cold again', tells: 'nobody', isFirst: true },
    ]);
    expect(moves).toEqual([2, 1]);
  });
});
