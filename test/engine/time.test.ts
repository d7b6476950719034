import { describe, expect, test } from 'vitest';
import { compileProfile } from '../../src/engine/compile.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { Listening } from '../../src/engine/last-seen.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { purposeWith } from './samples.ts';

const s = 1_000;
const push = { cloud: { sendPush: true } };
const above5 = (threshold: object) => ({ sId: 'a', threshold, thresholds: { isGt: 5 } });

/** A value of sense `a` measured at `atS` and arriving `lateS` later, or `until`: runs what is due by then. Seconds. */
type Step = [atS: number, val: number, lateS?: number] | { until: number };

/** When the event fires, in seconds, and whether by a tick. Stores and reads the runtime between any two steps. */
function firings(causes: object[], steps: Step[], listening?: Listening): string[] {
  const profile = compileProfile('p', [purposeWith({ evId: 1, actions: push, causes })]);
  let runtime = startRuntime(profile, 0);
  return steps.flatMap((step) => {
    const evaluator = new Evaluator(profile, runtime, listening);
    const isTick = 'until' in step;
    const [atS, val, lateS = 0] = isTick ? [step.until, 0] : step;
    const [t, arrivedTs] = [atS * s, (atS + lateS) * s];
    const moment = { t, arrivedTs };
    const ticks = [
      ...evaluator.ticksUntil(arrivedTs),
      ...(isTick ? [] : evaluator.ticksForcedBy('a', moment)),
    ];
    const measured = isTick ? [] : [evaluator.measure({ sId: 'a', val, ts: t }, moment, true)];
    const text = encodeRuntime(profile, evaluator.end());
    runtime = readRuntime(profile, JSON.parse(text) as StoredRuntime);
    expect(runtime).toStrictEqual(evaluator.end());
    const told = (isOfTick: boolean, from: typeof ticks) =>
      from.flatMap((outcome) =>
        outcome.firings.map(({ event }) => `${isOfTick ? 'tick ' : ''}${event.ts / s}`),
      );
    return [...told(true, ticks), ...told(false, measured)];
  });
}

describe('forMs', () => {
  const cause = above5({ forMs: 10 * s });
  test.each<[string, object, Step[], string[]]>([
    ['no tick before R, two seconds after d', cause, [[100, 9], { until: 111 }], []],
    ['a tick at R, with d as its time', cause, [[100, 9], { until: 112 }], ['tick 110']],
    [
      'a later measurement forces it before',
      cause,
      [
        [100, 9],
        [111, 1],
      ],
      ['tick 110'],
    ],
    ['one at exactly d still counts', cause, [[100, 9], [110, 1], { until: 200 }], []],
    ['a disagreement ends the run', cause, [[100, 9], [105, 1], { until: 200 }], []],
    ['a late one waits for a minute', cause, [[100, 9, 61], { until: 220 }], []],
    ['and fires then', cause, [[100, 9, 61], { until: 221 }], ['tick 110']],
    ['a tick comes once', cause, [[100, 9], { until: 112 }, { until: 900 }], ['tick 110']],
    [
      'a firing ends the run, the next agreeing measurement begins another',
      cause,
      [[100, 9], { until: 112 }, [113, 9], { until: 125 }],
      ['tick 110', 'tick 123'],
    ],
    [
      'with a count it is complete with the outcome that was missing',
      above5({ forMs: 10 * s, count: 2 }),
      [[100, 9], { until: 115 }, [120, 9], { until: 122 }],
      ['tick 120'],
    ],
  ])('%s', (_name, given, steps, expected) => {
    expect(firings([given], steps)).toEqual(expected);
  });
});

test('reports no number for a position that agreed last', () => {
  const cause = { sId: 'a', threshold: { forMs: s, relative: true }, thresholds: { isAny: true } };
  const profile = compileProfile('p', [purposeWith({ evId: 1, causes: [cause] })]);
  const evaluator = new Evaluator(profile, startRuntime(profile, 0));
  const moment = { t: 0, arrivedTs: 0 };
  for (const val of [1, { lat: 1, long: 2 }])
    evaluator.measure({ sId: 'a', val, ts: 0 }, moment, true);
  const [ticked] = evaluator.ticksUntil(3 * s);
  expect(ticked?.firings[0]?.event.why).toMatchObject([{ of: 2, heldMs: s, sinceTs: 0 }]);
  expect(ticked?.firings[0]?.event.why?.[0]).not.toHaveProperty('compared');
});

describe('noneForMs', () => {
  const cause = { sId: 'a', threshold: { noneForMs: 60 * s } };
  const gap = { gaps: [{ fromTs: 30 * s, toTs: 500 * s }] };
  const open = { gaps: [{ fromTs: 30 * s, toTs: null }] };
  test.each<[string, Listening | undefined, Step[], string[]]>([
    ['counts from the profile', undefined, [{ until: 59 }, { until: 60 }], ['tick 60']],
    [
      'counts from the arrival',
      undefined,
      [[10, 1, 20], { until: 89 }, { until: 90 }],
      ['tick 90'],
    ],
    ['comes once', undefined, [{ until: 60 }, { until: 500 }], ['tick 60']],
    [
      'again after a measurement',
      undefined,
      [{ until: 60 }, [70, 1], { until: 130 }],
      ['tick 60', 'tick 130'],
    ],
    ['only listening counts, and a pause', gap, [{ until: 559 }, { until: 560 }], ['tick 530']],
    ['nothing while a gap lasts', open, [{ until: 100_000 }], []],
  ])('%s', (_name, listening, steps, expected) => {
    expect(firings([cause], steps, listening)).toEqual(expected);
  });

  test('looks again later while a gap lasts', () => {
    const profile = compileProfile('p', [purposeWith({ evId: 1, causes: [cause] })]);
    const evaluator = new Evaluator(profile, startRuntime(profile, 0), open);
    evaluator.ticksUntil(1_000 * s);
    expect(evaluator.nextDueTs()).toBeGreaterThan(1_000 * s);
  });
});

describe('maxAgeMs', () => {
  const cause = above5({ maxAgeMs: 10 * s, count: 2 });
  test.each<[string, object, Step[], string[]]>([
    [
      'outcomes of that age count',
      cause,
      [
        [100, 9],
        [110, 9],
      ],
      ['110'],
    ],
    [
      'older ones do not',
      cause,
      [
        [100, 9],
        [111, 9],
        [112, 9],
      ],
      ['112'],
    ],
    [
      'a run whose newest outcome is too old by its tick ends',
      above5({ forMs: 20 * s, maxAgeMs: 10 * s }),
      [[100, 9], [105, 9], { until: 300 }],
      [],
    ],
    [
      'a run that goes on is complete',
      above5({ forMs: 20 * s, maxAgeMs: 10 * s }),
      [[100, 9], [109, 9], [118, 9], { until: 300 }],
      ['tick 120'],
    ],
  ])('%s', (_name, given, steps, expected) => {
    expect(firings([given], steps)).toEqual(expected);
  });
});

describe('over', () => {
  const over = (stat: string) => above5({ over: { ms: 120 * s, stat } });
  test.each<[string, object, Step[], string[]]>([
    [
      'nothing is compared before half of it',
      over('avg'),
      [
        [120, 9],
        [179, 9],
        [180, 9],
      ],
      ['180'],
    ],
    [
      'avg',
      over('avg'),
      [
        [120, 0],
        [170, 2],
        [180, 16],
        [181, 1],
      ],
      ['180'],
    ],
    [
      'sum',
      over('sum'),
      [
        [120, 2],
        [170, 2],
        [180, 1],
        [181, 1],
      ],
      ['181'],
    ],
    [
      'delta: newest minus oldest',
      over('delta'),
      [
        [120, 2],
        [150, 9],
        [180, 7],
        [190, 8],
      ],
      ['190'],
    ],
    [
      'what is older than 12 bins is gone',
      over('sum'),
      [
        [120, 9],
        [240, 1],
        [241, 1],
      ],
      [],
    ],
  ])('%s', (_name, given, steps, expected) => {
    expect(firings([given], steps)).toEqual(expected);
  });
});
