import { z } from 'zod';

/** A place on Earth in degrees (WGS 84). */
export const Position = z
  .object({
    lat: z.number().min(-90).max(90),
    long: z.number().min(-180).max(180),
  })
  .meta({ id: 'Position', description: 'A place on Earth in degrees (WGS 84).' });
export type Position = z.infer<typeof Position>;

/** What one sense measured at one moment; `ts` in milliseconds since the Unix epoch. */
export type Measurement = { sId: string; val: number | Position; ts: number };

/** The last to come of the values of one millisecond; undefined where there is none. `last`: where it is not among `vals`. */
export function lastOf(
  newest: { vals: readonly Measurement['val'][]; last?: Measurement['val'] } | undefined,
): Measurement['val'] | undefined {
  return newest?.last ?? newest?.vals.at(-1);
}
