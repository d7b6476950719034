import { z } from 'zod';
import { Position } from '../../src/contract/values.ts';

const Place = z.strictObject({ puId: z.int(), stId: z.int() });

const Fires = Place.extend({
  evId: z.int(),
  record: z.boolean().optional(),
  ring: z.boolean().optional(),
  first: z.boolean().optional(),
  ts: z.int().optional(),
  ageMs: z.int().optional(),
  began: z.strictObject({ ts: z.int(), arrivedTs: z.int().nullable() }).nullable().optional(),
  why: z
    .array(
      z.strictObject({
        sId: z.string(),
        group: z.int().optional(),
        compared: z.number().optional(),
        heldMs: z.int().optional(),
        silentMs: z.int().optional(),
        sinceTs: z.int().optional(),
      }),
    )
    .optional(),
  senses: z.array(
    z.strictObject({
      sId: z.string(),
      val: z.number(),
      ts: z.int(),
      lat: z.number().optional(),
      long: z.number().optional(),
    }),
  ),
});

const Moves = Place.extend({
  event: z
    .strictObject({
      event: z.string(),
      oldValue: z.int(),
      newValue: z.int(),
      engine: Place.extend({ evId: z.int(), ts: z.int() }).optional(),
    })
    .nullable(),
});
export type Moves = z.infer<typeof Moves>;

const Led = z.strictObject({
  fires: z.array(Fires),
  ended: z.array(Place.extend({ evId: z.int() })).optional(),
  shows: z.array(z.string()).optional(),
  moves: Moves.optional(),
});
export type Led = z.infer<typeof Led>;

const Measurement = z.strictObject({
  sId: z.string(),
  val: z.union([z.number(), Position]),
  ts: z.int().optional(),
});

const arrivedTs = z.int().optional();
const nextDueTs = z.int().nullable().optional();
const ticks = z.array(Led).optional();

const Step = z.union([
  Led.extend({ measurement: Measurement, arrivedTs, ticks, nextDueTs }),
  z.strictObject({
    message: z.array(Measurement),
    arrivedTs: z.int(),
    ticks,
    evaluates: z.array(Led.extend({ measurement: Measurement, ticks })),
    nextDueTs,
  }),
  z.strictObject({ tick: z.strictObject({ at: z.int() }), ticks: z.array(Led), nextDueTs }),
  z.strictObject({ clock: z.strictObject({ at: z.int() }), ticks: z.array(Led), nextDueTs }),
  z.strictObject({
    enter: Place.extend({ evId: z.int().optional(), ts: z.int().optional() }),
    arrivedTs,
    moves: Moves.nullable().optional(),
    nextDueTs,
  }),
  z.strictObject({ install: z.array(z.unknown()), arrivedTs, nextDueTs }),
]);
export type Step = z.infer<typeof Step>;

/** One case of test/vectors, as its README describes it. */
export const Vector = z.strictObject({
  rule: z.string(),
  purposes: z.array(z.unknown()),
  installedTs: z.int().optional(),
  listening: z.array(z.strictObject({ fromTs: z.int(), toTs: z.int().nullable() })).optional(),
  starts: Place.optional(),
  steps: z.array(Step),
  ends: Place,
});
export type Vector = z.infer<typeof Vector>;
