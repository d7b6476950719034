import { z } from 'zod';
import { Labels } from '../contract/label.ts';
import { Text } from '../contract/text.ts';
import { uuidParam } from '../http/schema.ts';
import { DeviceFilter } from './fleet-schema.ts';

/** Devices that are named in one request; a filter finds any number. */
const mostDevices = 10_000;

const actions = ['label', 'unlabel', 'mute', 'unmute', 'remove'] as const;
export type ActionName = (typeof actions)[number];

const takesLabels = (action: ActionName) => action === 'label' || action === 'unlabel';

/** The body of POST /v2/devices/actions. */
export const DeviceAction = z
  .object({
    action: z.enum(actions),
    labels: Labels.min(1).optional().meta({ description: 'Of label and unlabel.' }),
    untilTs: z.int().min(0).optional().meta({ description: 'Of mute: until when, ms.' }),
    reason: Text.max(200).optional().meta({ description: 'Of mute: why, for others to see.' }),
    deviceAuthUuids: z.array(uuidParam).min(1).max(mostDevices).optional(),
    filter: DeviceFilter.optional(),
    jobId: uuidParam.optional().meta({
      description: 'Those of a job that ended within the last hour: to take it back.',
    }),
  })
  .superRefine(({ action, labels, untilTs, reason, ...which }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (takesLabels(action) !== (labels !== undefined))
      say('labels', takesLabels(action) ? 'expected at least one' : `${action} takes none`);
    if ((action === 'mute') !== (untilTs !== undefined))
      say('untilTs', action === 'mute' ? 'expected a time' : `${action} takes none`);
    if (reason !== undefined && action !== 'mute') say('reason', `${action} takes none`);
    const { deviceAuthUuids, filter, jobId } = which;
    if ([deviceAuthUuids, filter, jobId].filter((given) => given !== undefined).length !== 1)
      say('filter', 'expected either deviceAuthUuids or filter, or jobId');
  });
export type DeviceAction = z.output<typeof DeviceAction>;

/** What a job is told of it. */
export type StoredAction = {
  action: ActionName;
  labels?: string[];
  untilTs?: number;
  reason?: string;
};
