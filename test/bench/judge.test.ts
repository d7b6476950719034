import { expect, test } from 'vitest';
import { judge, type Comparison, type Metrics } from '../../bench/rounds.ts';

const comparison: Comparison = {
  metric: 'acksPerSecond',
  ours: 'Sensorium',
  beside: 'bare aedes',
  bound: 'at least',
  target: 0.6,
};

/** Three rounds whose medians are `acks` and `clientCores`. */
function roundsOf(acks: number, clientCores: number): Metrics[] {
  return [0.9, 1, 1.1].map((noise) => ({
    acksPerSecond: acks * noise,
    clientCores: clientCores * noise,
  }));
}

const judged = (ours: Metrics[], beside: Metrics[], asked = comparison) =>
  judge(
    asked,
    new Map([
      ['Sensorium', ours],
      ['bare aedes', beside],
    ]),
  );

test('a ratio of medians is compared with its bound', () => {
  const verdict = judged(roundsOf(60, 0.3), roundsOf(100, 0.5));
  expect(verdict).toMatchObject({ ratio: 0.6, reached: true, clientBound: [] });
  expect(judged(roundsOf(59, 0.3), roundsOf(100, 0.5)).reached).toBe(false);
  const atMost = { ...comparison, bound: 'at most' as const };
  expect(judged(roundsOf(59, 0.3), roundsOf(100, 0.5), atMost).reached).toBe(true);
});

test('the range of ratios is that of single rounds', () => {
  const { ratio, spread } = judged(
    [40, 80, 60].map((acksPerSecond) => ({ acksPerSecond })),
    [80, 100, 150].map((acksPerSecond) => ({ acksPerSecond })),
  );
  expect({ ratio, spread }).toEqual({ ratio: 0.6, spread: [0.4, 0.8] });
});

test('if the load client was the bottleneck, the verdict says in which comparison', () => {
  const verdict = judged(roundsOf(60, 0.5), roundsOf(100, 0.96));
  expect(verdict.clientBound).toEqual(['bare aedes']);
});
