import { z } from 'zod';
import { Text } from './values.ts';

/** A sense (sensor) of a module; specification section 2.4. `minInterval` in milliseconds. */
export const Sense = z
  .object({
    sId: z.string().regex(/^0x[0-9A-Fa-f]+$/, 'expected 0x followed by hexadecimal digits'),
    min: z.number().optional(),
    max: z.number().optional(),
    minInterval: z.int().min(0).optional(),
    /** How people see it, in addition to the specification. */
    name: Text.optional(),
    unit: Text.optional(),
    decimals: z.int().min(0).max(10).optional(),
  })
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
    path: ['min'],
    error: 'expected min to be at most max',
  })
  .meta({ id: 'Sense' });
export type Sense = z.infer<typeof Sense>;

const Module = z
  .object({
    moduleId: Text,
    moduleName: Text.optional(),
    senses: z.array(Sense).default([]),
  })
  .meta({ id: 'Module' });

const maxRepeated = 100;

/** A device's description of itself; specification section 2.4. Each `sId` is unique in the device. */
export const Configuration = z
  .object({
    device: z
      .object({
        name: Text.optional(),
        swName: Text.optional(),
        swVersion: Text.optional(),
        hwVersion: Text.optional(),
        serial: Text.optional(),
      })
      .meta({ id: 'DeviceDescription' }),
    module: z.array(Module),
  })
  .superRefine(({ module }, context) => {
    const seen = new Set<string>();
    let problems = 0;
    for (const [m, { senses }] of module.entries()) {
      for (const [s, { sId }] of senses.entries()) {
        const path = ['module', m, 'senses', s, 'sId'];
        // Each problem costs more than the sense itself, and nobody reads more.
        if (seen.has(sId) && (problems += 1) <= maxRepeated)
          context.addIssue({ code: 'custom', path, message: `${sId} is already in use` });
        seen.add(sId);
      }
    }
  })
  .meta({ id: 'Configuration' });
export type Configuration = z.infer<typeof Configuration>;

/** A device's senses by `sId`, which is unique in the device. */
export function sensesOf(configuration: Configuration): ReadonlyMap<string, Sense> {
  const senses = configuration.module.flatMap((module) => module.senses);
  return new Map(senses.map((sense) => [sense.sId, sense]));
}
