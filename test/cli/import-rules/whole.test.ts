import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readModels } from '../../../src/cli/import-rules/model.ts';
import { translate } from '../../../src/cli/import-rules/translate.ts';
import { runs } from '../../support/share.ts';
import { playPurpose } from './engine.ts';
import { Detector, type Sent } from './interpreter.ts';
import { coldStore, heartbeat, pump } from './models.ts';

const startMs = 1_790_000_000_000;

/** A message, before its time: what arrives how long after the one before. */
type Arrives = { afterMs: number; input: string; payload: Record<string, unknown> };

async function compare(definition: unknown, arrives: Arrives[]) {
  const [model] = await readModels(JSON.stringify(definition), 'model.json');
  if (!model) throw new Error('there is a model');
  const translated = translate(model, 1);
  if (translated.verdict !== 'whole') return translated;
  let atMs = startMs;
  const sent = arrives
    .map(({ afterMs, ...one }): Sent => ({ ...one, atMs: (atMs += afterMs) }))
    // A detector hears only the inputs that its model names.
    .filter(({ input }) => model.inputs.includes(input));
  const untilMs = atMs + 1_000_000;
  const detector = new Detector(model);
  for (const one of sent) detector.receive(one);
  detector.runUntil(untilMs);
  const ours = playPurpose(translated, sent, untilMs);
  expect(ours.moves).toEqual(detector.done.moves);
  expect(ours.published).toEqual(detector.done.published);
  return translated;
}

const after = fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 200_000 }));

describe('a model that is taken over as a whole leads to the same states', () => {
  test.each([
    ['cold store', coldStore, 'climate', (val: number) => ({ data: { temp: val } }), [2, 8, 9, 12]],
    ['heartbeat', heartbeat, 'beat', (val: number) => ({ value: val }), [0, 1]],
  ] as const)('%s', async (_name, model, input, payloadOf, around) => {
    const value = fc.oneof(fc.constantFrom(...around), fc.integer({ min: 0, max: 14 }));
    const arrives = fc.record({
      afterMs: after,
      input: fc.constant(input),
      payload: value.map((val) => payloadOf(val)),
    });
    let moves = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(arrives, { minLength: 1, maxLength: 30 }), async (all) => {
        const { verdict, leftOut, differs } = await compare(model, all);
        expect({ verdict, leftOut, differs }).toMatchObject({ verdict: 'whole' });
        moves += 1;
      }),
      { numRuns: runs(200) },
    );
    expect(moves).toBeGreaterThan(0);
  });

  test('with two inputs, text and booleans', async () => {
    const arrives = fc.oneof(
      fc.record({
        afterMs: after,
        input: fc.constant('command'),
        payload: fc.constantFrom('start', 'stop', 'wait').map((word) => ({ word })),
      }),
      fc.record({
        afterMs: after,
        input: fc.constant('guard'),
        payload: fc.boolean().map((open) => ({ open })),
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(arrives, { minLength: 1, maxLength: 30 }), async (all) => {
        const { verdict, leftOut, differs } = await compare(pump, all);
        expect({ verdict, leftOut, differs }).toMatchObject({ verdict: 'whole' });
      }),
      { numRuns: runs(200) },
    );
  });

  test('and so does a random one', async () => {
    let whole = 0;
    let moved = 0;
    await fc.assert(
      fc.asyncProperty(
        randomModel,
        fc.array(randomMessage, { minLength: 1, maxLength: 30 }),
        async (model, all) => {
          const { verdict } = await compare(model, all);
          if (verdict === 'whole') whole += 1;
          moved += 1;
        },
      ),
      { numRuns: runs(2_000) },
    );
    // Otherwise the property says little.
    expect(whole).toBeGreaterThan(moved / 10);
  });
});

const names = ['one', 'two', 'three'];
const inputs = ['a', 'b'];
const payloads: Record<string, fc.Arbitrary<Record<string, unknown>>> = {
  a: fc.integer({ min: 0, max: 5 }).map((x) => ({ x })),
  b: fc.constantFrom('red', 'green', 'blue').map((y) => ({ y })),
};
const randomMessage = fc.constantFrom(...inputs).chain((input) =>
  fc.record({
    afterMs: fc.oneof(after, fc.constantFrom(60_000, 120_000)),
    input: fc.constant(input),
    payload: payloads[input] as fc.Arbitrary<Record<string, unknown>>,
  }),
);

const comparison = fc.oneof(
  fc
    .tuple(fc.constantFrom('<', '<=', '>', '>=', '==', '!='), fc.integer({ min: 1, max: 4 }))
    .map(([operator, limit]) => `$input.a.x ${operator} ${limit}`),
  fc
    .tuple(fc.constantFrom('==', '!='), fc.constantFrom('red', 'green'))
    .map(([operator, word]) => `$input.b.y ${operator} '${word}'`),
);
const ofOne = (input: string) => comparison.filter((one) => one.startsWith(`$input.${input}`));
const compound = (input: string) =>
  fc.oneof(
    ofOne(input),
    fc
      .tuple(ofOne(input), fc.constantFrom('&&', '||'), ofOne(input))
      .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    ofOne(input).map((one) => `!(${one})`),
  );
/** Mostly such as are the same in a purpose. */
const condition = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .constantFrom(...inputs)
      .chain((input) => compound(input).map((one) => `currentInput("${input}") && ${one}`)),
  },
  { weight: 3, arbitrary: fc.constantFrom(...inputs).chain(compound) },
  { weight: 2, arbitrary: fc.constantFrom(...inputs).map((input) => `currentInput('${input}')`) },
  { weight: 2, arbitrary: fc.constant('timeout("t")') },
  { weight: 1, arbitrary: fc.constantFrom('timeout("t") || currentInput("b")', 'true', 'false') },
);
const sns = fc.constantFrom<object[]>([], [{ sns: { targetArn: 'arn:topic' } }]);
const randomModel = fc
  .record({
    initialStateName: fc.constantFrom(...names),
    states: fc.tuple(
      ...names.map((stateName) =>
        fc.record({
          stateName: fc.constant(stateName),
          onEnter: fc.record({
            events: fc.constantFrom<object[]>(
              [],
              [{ eventName: 'set', actions: [{ setTimer: { timerName: 't', seconds: 60 } }] }],
            ),
          }),
          onInput: fc.record({
            events: fc.oneof(
              fc.constant<object[]>([]),
              fc.constant<object[]>([
                {
                  eventName: 'again',
                  condition: 'currentInput("a")',
                  actions: [{ resetTimer: { timerName: 't' } }],
                },
              ]),
              fc
                .record({ eventName: fc.constant('tell'), condition, actions: sns })
                .map((one): object[] => [one]),
            ),
            transitionEvents: fc.array(
              fc.record({
                eventName: fc.constant('go'),
                condition,
                actions: sns,
                nextState: fc.constantFrom(...names),
              }),
              { maxLength: 3 },
            ),
          }),
          onExit: fc.record({ events: fc.constant<object[]>([]) }),
        }),
      ),
    ),
  })
  .map((detectorModelDefinition) => ({
    detectorModelName: 'random',
    key: 'id',
    detectorModelDefinition,
  }));
