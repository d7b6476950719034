import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Rule } from '../../../src/console/web/pages/rules/document.ts';
import { layOut, nextPlace, type Place } from '../../../src/console/web/pages/rules/layout.ts';

type Area = { x: number; y: number; width: number; height: number };

/** A rule by where the events of each state lead; null: they stay. */
const ruleOf = (states: readonly (readonly (number | null)[])[], name = 'S'): Rule => ({
  puId: 1,
  initStId: 1,
  states: states.map((events, s) => ({
    stId: s + 1,
    name: `${name} ${s + 1}`,
    events: events.map((to, e) => ({
      evId: e + 1,
      causes: [],
      actions: to === null ? {} : { engine: { gotoStId: to } },
    })),
  })),
});

const anyRule = fc.integer({ min: 2, max: 9 }).chain((count) =>
  fc
    .array(fc.array(fc.option(fc.integer({ min: 1, max: count + 1 })), { maxLength: 4 }), {
      minLength: count,
      maxLength: count,
    })
    .map((states) => ruleOf(states)),
);

const overlap = (a: Area, b: Area) =>
  a.x + a.width > b.x + 0.01 &&
  b.x + b.width > a.x + 0.01 &&
  a.y + a.height > b.y + 0.01 &&
  b.y + b.height > a.y + 0.01;

const isOnEdgeOf = ({ x, y, width, height }: Area, at: { x: number; y: number }) => {
  const dx = Math.abs(at.x - x - width / 2) - width / 2;
  const dy = Math.abs(at.y - y - height / 2) - height / 2;
  return Math.abs(Math.max(dx, dy)) < 0.6;
};

test('every state and event has its place, none lies on another, and lines end at their states', () => {
  fc.assert(
    fc.property(anyRule, (rule) => {
      const { boxes, places, arrows, width, height } = layOut(rule);
      const all = rule.states.flatMap(({ stId, events }) => [
        `${stId}/`,
        ...events.map(({ evId }) => `${stId}/${evId}`),
      ]);
      const ids = places.map(({ at }) => `${at.stId}/${at.evId ?? ''}`);
      expect(ids.toSorted()).toEqual(all.toSorted());
      places.forEach((place, n) => {
        expect(places.slice(n + 1).filter((other) => overlap(place, other))).toEqual([]);
        expect(overlap(place, { x: 0, y: 0, width, height })).toBe(true);
        // The label of a line is in no box; a row is in that of its state.
        const inside = boxes.filter((box) => overlap(box, place)).map(({ stId }) => stId);
        expect(inside).toEqual(place.to === undefined ? [place.at.stId] : []);
      });
      expect(arrows).toHaveLength(places.filter(({ to }) => to !== undefined).length);
      for (const { at, line, tip } of arrows) {
        const { to } = places.find((place) => place.at === at) as Place;
        const [x = 0, y = 0] = line.slice(1).split(/[ QL]/).map(Number);
        const [source, target] = [at.stId, to].map((id) => boxes.find(({ stId }) => stId === id));
        expect(isOnEdgeOf(source as Area, { x, y })).toBe(true);
        expect(isOnEdgeOf(target as Area, tip)).toBe(true);
      }
    }),
    { numRuns: 150 },
  );
});

test('it is the same each time, and a name moves nothing', () => {
  const states = [[2, 3], [3, null], [1]];
  expect(layOut(ruleOf(states))).toEqual(layOut(ruleOf(states)));
  expect(layOut(ruleOf(states, 'A much longer name'))).toEqual(layOut(ruleOf(states)));
});

test('the first state is above the others, and marked', () => {
  const rule = { ...ruleOf([[2], [3], [1]]), initStId: 2 };
  const { boxes, begin } = layOut(rule);
  const [a, b, c] = boxes.map(({ y }) => y) as [number, number, number];
  expect([b < c, c < a]).toEqual([true, true]);
  expect(isOnEdgeOf(boxes[1] as Area, begin as { x: number; y: number })).toBe(true);
});

test('what leads to another rule, to the same state or to none is a row of its state', () => {
  const rule = ruleOf([[2, 1, 9], []]);
  const [first] = rule.states as [Rule['states'][number]];
  const away = { evId: 4, causes: [], actions: { engine: { gotoPuId: 7, gotoStId: 2 } } };
  const here = { evId: 5, causes: [], actions: { engine: { gotoPuId: 1, gotoStId: 2 } } };
  const states = [{ ...first, events: [...first.events, away, here] }, ...rule.states.slice(1)];
  const { arrows } = layOut({ ...rule, states });
  expect(arrows.map(({ at }) => at.evId)).toEqual([1, 5]);
});

test('numbers that are doubled, and a rule without states, do not break it', () => {
  const { boxes, places } = layOut({
    states: [...ruleOf([[null]]).states, ...ruleOf([[2]]).states],
  });
  expect([boxes.length, places.length]).toEqual([1, 2]);
  expect(layOut({ states: [] }).boxes).toEqual([]);
});

test('arrow keys lead along the lines to every state', () => {
  const { places } = layOut(ruleOf([[2, null], [1, 3], [1]]));
  const [first] = places as [Place];
  const reached = new Set([first]);
  for (const from of reached)
    for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) {
      const next = nextPlace(places, from, key);
      if (next) reached.add(next);
    }
  expect(reached.size).toBe(places.length);
  expect(nextPlace(places, first, 'ArrowUp')).toBeNull();
  expect(nextPlace(places, first, 'Enter')).toBeNull();
  expect(nextPlace(places, first, 'ArrowDown')?.at).toEqual({ stId: 1, evId: 2 });
});
