import { z } from 'zod';
import { Actions } from './actions.ts';
import { duration, integer, integer32, oneMinute, oneSecond } from './integer.ts';
import { Position } from './measurement.ts';
import { structuralProblems } from './purpose-structure.ts';
import { Text } from './text.ts';

/** Longest window, so that what a device has collected stays small enough to be written with every message. */
const maxCount = 1_000;

/** Specification section 2.5: "One sample gives it as the string form of a boolean." */
const BooleanOrText = z.union(
  [
    z.boolean(),
    z
      .enum(['true', 'false'])
      .transform((text) => text === 'true')
      .pipe(z.boolean()),
  ],
  'expected a boolean, or one as text: "true" or "false"',
);

/** Conditions on one measurement; those that are present must all agree. */
export const Thresholds = z
  .object({
    isOneOf: z.array(z.number()).optional(),
    isGt: z.number().optional(),
    isLt: z.number().optional(),
    isNotIn: z.array(z.number()).optional(),
    isAny: z.boolean().optional(),
    isInsideGeo: z.array(Position).min(3, 'a polygon has at least 3 points').optional(),
  })
  .meta({ id: 'Thresholds' });
export type Thresholds = z.infer<typeof Thresholds>;

/**
 * `measurement` instructs the device, but for its `count`, which is the length of the window too. `forMs`,
 * `noneForMs`, `maxAgeMs` and `over` speak of time, in ms: docs/engine.md.
 */
export const Cause = z
  .object({
    sId: Text.min(1),
    orderId: integer32.optional(),
    senseLog: z.boolean().default(false),
    measurement: z
      .object({
        log: BooleanOrText.default(false),
        interval: integer(0, Number.MAX_SAFE_INTEGER).optional(),
        count: integer(0, maxCount).optional(),
      })
      .meta({ id: 'MeasurementInstruction' })
      .optional(),
    threshold: z
      .object({
        count: integer(1, maxCount).optional(),
        negate: z.boolean().default(false),
        relative: z.boolean().default(false),
        decimalAcc: integer(0, 20).optional(),
        forMs: duration(oneSecond).optional().meta({
          description: 'It holds once its measurements agreed for so long, in ms.',
        }),
        noneForMs: duration(oneSecond).optional().meta({
          description:
            'It holds once nothing was measured for so long, in ms. It has no thresholds.',
        }),
        maxAgeMs: duration(oneSecond).optional().meta({
          description:
            "Measurements that are older than so beside the event's newest do not count, in ms.",
        }),
        over: z
          .object({ ms: duration(oneMinute), stat: z.enum(['avg', 'sum', 'delta']) })
          .meta({ id: 'OverTime' })
          .optional()
          .meta({ description: 'A statistic of the last `ms` is compared instead of one value.' }),
      })
      .meta({ id: 'ThresholdRule' })
      .optional(),
    thresholds: Thresholds.default({}),
  })
  .meta({ id: 'Cause' });
export type Cause = z.infer<typeof Cause>;

export const PurposeEvent = z
  .object({
    evId: integer32,
    name: Text.optional(),
    eventLog: z.boolean().default(false),
    actions: Actions.default({}),
    causes: z.array(Cause).max(32).default([]),
  })
  .meta({ id: 'PurposeEvent' });
export type PurposeEvent = z.infer<typeof PurposeEvent>;

export const State = z
  .object({
    stId: integer32,
    name: Text.optional(),
    isGlobal: z.boolean().default(false),
    events: z.array(PurposeEvent).max(64).default([]),
  })
  .meta({ id: 'State' });
export type State = z.infer<typeof State>;

/** Structural problems that are listed: each costs more than what it is found in. */
const maxStructural = 100;

/**
 * States, their events, the causes and actions of those; specification section 2.5. Parsing lists
 * every problem at once; unknown fields are left out.
 */
export const Purpose = z
  .object({
    puId: integer32,
    name: Text.optional(),
    initStId: integer32,
    states: z.array(State).max(256),
  })
  .superRefine(
    (purpose, context) => {
      for (const { path, message } of structuralProblems(purpose).slice(0, maxStructural)) {
        context.addIssue({ code: 'custom', path, message });
      }
    },
    // A field of a wrong type elsewhere must not hide what else is wrong.
    { when: () => true },
  )
  .meta({ id: 'Purpose' });
export type Purpose = z.infer<typeof Purpose>;

/** Where a problem of the purpose at `index` is said to be, as a JSON Pointer. */
export type PurposePath = (index: number) => string;
