import { z } from 'zod';
import { devicesQuery, labelQuery } from '../http/list-query.ts';
import { timestampQuery } from '../http/schema.ts';

/** Which devices: those named, and those with a label. */
export const devicesMembers = { devices: devicesQuery, label: labelQuery };

/** Which times, and in which order. */
export const rangeMembers = {
  start: timestampQuery.optional(),
  end: timestampQuery.optional(),
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
