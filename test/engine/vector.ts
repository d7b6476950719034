import { z } from 'zod';
import { Position } from '../../src/contract/measurement.ts';

const Place = z.strictObject({ puId: z.int(), stId: z.int() });

const Fires = z.strictObject({
  puId: z.int(),
  stId: z.int(),
  evId: z.int(),
  record: z.boolean(),
  ring: z.boolean(),
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
  event: z.strictObject({ event: z.string(), oldValue: z.int(), newValue: z.int() }).nullable(),
});

const Step = z.union([
  z.strictObject({
    measurement: z.strictObject({
      sId: z.string(),
      val: z.union([z.number(), Position]),
      ts: z.int(),
    }),
    fires: z.array(Fires),
    moves: Moves.optional(),
  }),
  z.strictObject({ enter: Place }),
  z.strictObject({ install: z.array(z.unknown()) }),
]);

/** One case of test/vectors, as its README describes it. */
export const Vector = z.strictObject({
  rule: z.string(),
  purposes: z.array(z.unknown()),
  starts: Place.optional(),
  steps: z.array(Step),
  ends: Place,
});
