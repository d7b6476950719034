import fc from 'fast-check';
import type { Measurement } from '../../src/contract/values.ts';
import { checkProfile } from '../../src/engine/check.ts';
import { Purpose } from '../../src/contract/purpose.ts';

// Few senses, values and moments, so that causes are met, broken and met again, and times collide.
export const sId = fc.constantFrom('0x1', '0x1', '0x2');
const place = fc.record({
  lat: fc.integer({ min: 0, max: 3 }),
  long: fc.integer({ min: 178, max: 180 }),
});
const number = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -2, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(2.55, -0, 1e308, -1e308, 5e-324) },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
);
export const optional = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

export const rarely = fc.nat(4).map((roll) => roll === 0);

export const thresholds = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ isAny: true }) },
  { weight: 3, arbitrary: number.map((isGt) => ({ isGt })) },
  {
    weight: 3,
    arbitrary: fc.record({
      isGt: optional(number),
      isLt: optional(number),
      isOneOf: optional(fc.array(number, { maxLength: 4 })),
      isNotIn: optional(fc.array(number, { maxLength: 4 })),
      isAny: optional(fc.boolean()),
      isInsideGeo: optional(fc.array(place, { minLength: 3, maxLength: 5 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(place, { minLength: 3, maxLength: 5 })
      .map((isInsideGeo) => ({ isInsideGeo })),
  },
);

/** Windows of at most `many` outcomes, usually of few. */
const countUpTo = (min: number, few: number, many: number) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min, max: few }) },
    { weight: 1, arbitrary: fc.integer({ min, max: many }) },
  );

const causeWith = (longest: number): fc.Arbitrary<unknown> =>
  fc.record({
    sId,
    orderId: optional(fc.integer({ min: 0, max: 2 })),
    measurement: optional(fc.record({ count: optional(countUpTo(0, 4, longest)) })),
    threshold: optional(
      fc.record({
        count: optional(countUpTo(1, 3, Math.max(3, Math.floor(longest / 2)))),
        negate: rarely,
        relative: rarely,
        decimalAcc: optional(fc.integer({ min: 0, max: 20 })),
      }),
    ),
    thresholds,
  });

const causesOf = (causes: unknown[]) => ({ causes });

function statesOf(cause: fc.Arbitrary<unknown>) {
  const event = fc.record({
    eventLog: fc.boolean(),
    sendPush: fc.boolean(),
    alarm: fc.option(fc.boolean(), { nil: undefined, freq: 2 }),
    /** Where it moves to, if anywhere: chosen from what the profile has. */
    goto: optional(fc.record({ purpose: optional(fc.nat(1)), state: optional(fc.nat(3)) })),
    when: fc.oneof(
      { weight: 8, arbitrary: fc.array(cause, { minLength: 1, maxLength: 2 }).map(causesOf) },
      { weight: 2, arbitrary: fc.array(cause, { maxLength: 3 }).map(causesOf) },
      {
        weight: 3,
        arbitrary: fc
          .array(fc.array(cause, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 3 })
          .map((anyOf) => ({ anyOf })),
      },
    ),
  });
  const state = fc.record({
    isGlobal: fc.boolean(),
    events: fc.array(event, { minLength: 1, maxLength: 3, size: 'max' }),
  });
  return fc.array(state, { minLength: 1, maxLength: 3, size: 'max' });
}

/** Purposes that are valid together, with windows of up to `longest` outcomes. */
export const purposesWith = (longest: number): fc.Arbitrary<Purpose[]> =>
  purposesOf(causeWith(longest));

/** Purposes that are valid together, with these causes. */
export function purposesOf(cause: fc.Arbitrary<unknown>): fc.Arbitrary<Purpose[]> {
  return fc
    .array(fc.record({ states: statesOf(cause), init: fc.nat(3) }), {
      minLength: 1,
      maxLength: 2,
    })
    .map((drafts) => {
      const built = drafts.map((draft, index) =>
        Purpose.parse({
          puId: index,
          initStId: draft.init % draft.states.length,
          states: draft.states.map(({ isGlobal, events }, stId) => ({
            stId,
            isGlobal,
            events: events.map(({ goto, sendPush, alarm, eventLog, when }, evId) => ({
              evId,
              eventLog,
              ...when,
              actions: { cloud: { sendPush }, alarm, engine: engineOf(goto, index, drafts) },
            })),
          })),
        }),
      );
      if (checkProfile(built).length > 0) throw new Error('The arbitrary made an invalid profile.');
      return built;
    });
}

export const purposes = purposesWith(4);

function engineOf(
  goto: { purpose?: number; state?: number } | undefined,
  own: number,
  drafts: { states: unknown[] }[],
) {
  if (!goto) return {};
  const puId = goto.purpose === undefined ? undefined : goto.purpose % drafts.length;
  const count = drafts[puId ?? own]?.states.length ?? 1;
  return { gotoPuId: puId, gotoStId: goto.state === undefined ? undefined : goto.state % count };
}

const measured = fc.record({
  sId,
  val: fc.oneof({ weight: 6, arbitrary: number }, { weight: 1, arbitrary: place }),
  // Usually a little later than the one before, sometimes at the same time or earlier.
  step: fc.integer({ min: -2, max: 3 }),
});

/** Measurements whose times advance, collide and go back. */
export function measurementsUpTo(maxLength: number): fc.Arbitrary<Measurement[]> {
  return fc.array(measured, { minLength: 1, maxLength, size: 'max' }).map((stream) => {
    let ts = 1_000;
    return stream.map(({ sId, val, step }) => ({ sId, val, ts: (ts += step) }));
  });
}

export const measurements = measurementsUpTo(40);
