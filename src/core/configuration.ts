import { z } from 'zod';

/** A sense (sensor) of a module; specification section 2.4. `minInterval` in milliseconds. */
export const Sense = z.object({
  sId: z.string().regex(/^0x[0-9A-Fa-f]+$/, 'expected 0x followed by hexadecimal digits'),
  min: z.number().optional(),
  max: z.number().optional(),
  minInterval: z.int().min(0).optional(),
});
export type Sense = z.infer<typeof Sense>;

export const Module = z.object({
  moduleId: z.string(),
  moduleName: z.string().optional(),
  senses: z.array(Sense).default([]),
});

/** A device's description of itself; specification section 2.4. */
export const Configuration = z.object({
  device: z.object({
    name: z.string().optional(),
    swName: z.string().optional(),
    swVersion: z.string().optional(),
    hwVersion: z.string().optional(),
    serial: z.string().optional(),
  }),
  module: z.array(Module),
});
export type Configuration = z.infer<typeof Configuration>;
