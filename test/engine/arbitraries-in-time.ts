import fc from 'fast-check';
import { type Measurement, OverStat } from '../../src/contract/values.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import { optional, purposesOf, rarely, sId, thresholds } from './arbitraries.ts';
import type { Gap } from './reference/due.ts';

// Few durations and steps, so that ticks come up at once, early and late.
const seconds = (...durations: number[]) => fc.constantFrom(...durations.map((it) => it * 1_000));

const small = fc.integer({ min: -2, max: 4 });
const count = optional(fc.integer({ min: 1, max: 3 }));
const forMs = seconds(1, 2, 5, 60, 300);
const maxAgeMs = seconds(1, 3, 10, 60, 600);
const over = fc.record({
  ms: fc.constantFrom(60_000, 100_001, 600_000),
  stat: fc.constantFrom(...OverStat.options),
});
const compares = { negate: rarely, decimalAcc: optional(fc.integer({ min: 0, max: 2 })) };
const measurement = optional(fc.record({ count: optional(fc.integer({ min: 0, max: 5 })) }));
const above = fc.oneof(
  { weight: 5, arbitrary: small.map((isGt) => ({ isGt })) },
  { weight: 1, arbitrary: fc.record({ isGt: small, isLt: small }) },
  { weight: 2, arbitrary: small.map((isLt) => ({ isLt })) },
  { weight: 1, arbitrary: fc.constant({ isAny: true }) },
  { weight: 1, arbitrary: fc.array(small, { maxLength: 4 }).map((isOneOf) => ({ isOneOf })) },
);
const orderId = optional(fc.integer({ min: 0, max: 2 }));

const plain = fc.record({
  sId,
  orderId,
  measurement,
  threshold: optional(fc.record({ count, relative: rarely, ...compares })),
  thresholds: fc.oneof({ weight: 4, arbitrary: above }, { weight: 1, arbitrary: thresholds }),
});
const lasting = fc.record({
  sId,
  orderId,
  measurement,
  threshold: fc.record({
    forMs,
    count,
    relative: rarely,
    maxAgeMs: fc.option(maxAgeMs, { nil: undefined, freq: 2 }),
    ...compares,
  }),
  thresholds: above,
});
const silent = fc.record({
  sId,
  orderId,
  measurement,
  threshold: fc.record({ noneForMs: seconds(1, 2, 5, 60, 300, 600) }),
});
const ageing = fc.record({
  sId,
  orderId,
  measurement,
  threshold: fc.record({ maxAgeMs, count, relative: rarely, ...compares }),
  thresholds: above,
});
const statistic = fc.record({
  sId,
  orderId,
  measurement,
  threshold: fc.record({
    over,
    count,
    forMs: fc.option(forMs, { nil: undefined, freq: 2 }),
    maxAgeMs: fc.option(maxAgeMs, { nil: undefined, freq: 2 }),
    ...compares,
  }),
  thresholds: above,
});

/** Purposes most of whose causes have time members. */
export const purposesInTime: fc.Arbitrary<Purpose[]> = purposesOf(
  fc.oneof(
    { weight: 3, arbitrary: plain },
    { weight: 4, arbitrary: lasting },
    { weight: 2, arbitrary: silent },
    { weight: 2, arbitrary: ageing },
    { weight: 2, arbitrary: statistic },
  ),
);

/** A measurement as it is sent: without `ts`, or that long before the message arrives (negative: dated ahead of it). */
const sent = fc.record({
  sId,
  val: fc.oneof(
    { weight: 24, arbitrary: small },
    { weight: 1, arbitrary: fc.constantFrom(-0, 0.1, 2.55, 1e308, -1e308) },
    { weight: 1, arbitrary: fc.record({ lat: small, long: fc.constantFrom(0, 1, 179) }) },
  ),
  agoMs: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(0, 1, 500, 1_000, 2_000, 3_000) },
    { weight: 3, arbitrary: fc.constantFrom(10_000, 60_000, 60_001, 200_000, 900_001) },
    { weight: 2, arbitrary: fc.constantFrom(-1_000, -10_000, -10_001, -3_600_000) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
});

const action = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.array(sent, { minLength: 1, maxLength: 4 }).map((values) => ({ values })),
  },
  { weight: 2, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.nat(20).map((again) => ({ again })) },
  { weight: 1, arbitrary: fc.tuple(fc.nat(1), fc.nat(3)).map((report) => ({ report })) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(5_000, 12_000, 61_000, 400_000, 1_000_000, 86_400_000)
      .map((backMs) => ({ backMs })),
  },
);

/** What happens to a device after `afterMs`: a message, a repetition, a report, a clock set right, or nothing. */
export type Happening = {
  afterMs: number;
  /** `ticksEarly`: also runs what is due halfway. `isStored`: stores the runtime and reads it again. */
  ticksEarly: boolean;
  isStored: boolean;
  values?: { sId: string; val: Measurement['val']; agoMs: number | null }[];
  again?: number;
  report?: [number, number];
  /** How far ahead the service's clock was until now. */
  backMs?: number;
};

export const happeningsUpTo = (maxLength: number): fc.Arbitrary<Happening[]> =>
  fc.array(
    fc
      .tuple(
        fc.constantFrom(0, 1, 500, 1_000, 1_000, 2_000, 2_001, 5_000, 10_000, 61_000, 400_000),
        fc.boolean(),
        rarely,
        action,
      )
      .map(([afterMs, ticksEarly, isStored, what]) => ({ afterMs, ticksEarly, isStored, ...what })),
    { minLength: 1, maxLength, size: 'max' },
  );

export const happenings = happeningsUpTo(25);

export const startTs = 1_700_000_000_000;

/** When the connector was not listening; the last gap may last. */
export const listening: fc.Arbitrary<Gap[]> = fc
  .array(
    fc.tuple(
      fc.constantFrom(1, 31_000, 32_500, 35_000, 91_000, 400_000),
      fc.constantFrom(15_001, 60_000, 400_000),
    ),
    { maxLength: 3 },
  )
  .map((lengths) => {
    let at = startTs - 30_000;
    return lengths.map(([afterMs, ms]) => {
      const fromTs = at + afterMs;
      return { fromTs, toTs: (at = fromTs + ms) };
    });
  });
