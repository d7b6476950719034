import { z } from 'zod';
import { devicesQuery } from '../http/list-query.ts';
import { readTime } from '../lib/read-time.ts';

/** Milliseconds since the epoch, or ISO 8601 with an offset; a date alone is its first moment in UTC. */
const Time = z
  .string()
  .max(40)
  .transform((text, context): number => {
    const ts = readTime(text);
    if (ts !== null) return ts;
    const message = 'expected milliseconds since 1970, or a time such as 2026-11-23T08:00:00Z';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      Object.assign(jsonSchema, {
        type: 'string',
        description:
          'Inclusive: milliseconds since 1970, or ISO 8601 with an offset: 2026-11-23T08:00:00Z.',
      });
    },
  });

/** Devices that are named in one request. */
export const maxNamedDevices = 500;

/** Which devices: those named, and those with a label. */
export const devicesMembers = {
  devices: devicesQuery(maxNamedDevices),
  label: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: 'Only devices with this label.' }),
};

/** Which times, and in which order. */
export const rangeMembers = {
  start: Time.optional(),
  end: Time.optional(),
  order: z
    .enum(['asc', 'desc'])
    .default('asc')
    .meta({ description: 'By time, in each series: asc, the oldest first, or desc.' }),
};

/** For `superRefine`: an answer about all devices of an account has to be asked for by a label of theirs. */
export function needDevices(
  { devices, label }: { devices?: string[] | undefined; label?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (devices || label !== undefined) return;
  context.addIssue({ code: 'custom', path: ['devices'], message: 'name devices, or a label' });
}
