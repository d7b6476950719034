import { z } from 'zod';
import { Severity } from '../contract/actions.ts';
import { Purpose } from '../contract/purpose.ts';
import { Labels, Text } from '../contract/values.ts';
import { Warnings } from '../contract/warnings.ts';
import { deviceUuid, namedLabels, timestamp, uuidParam } from '../http/schema.ts';
import { FleetQuery } from './schema.ts';

/** Which devices an action applies to: the filters of the list, in JSON. */
const DeviceFilter = z
  .strictObject(FleetQuery.omit({ limit: true, cursor: true, sort: true, counts: true }).shape)
  .extend({
    label: namedLabels
      .optional()
      .meta({ description: 'Only devices with this label, or with all of these.' }),
  })
  .extend({
    online: z.boolean().optional(),
    refused: z.boolean().optional(),
    muted: z.boolean().optional(),
    beyond: z.boolean().optional(),
  })
  .meta({
    id: 'DeviceFilter',
    description: 'The same filters as in the list of devices; empty: all devices.',
  });
type DeviceFilter = z.output<typeof DeviceFilter>;

/** Devices that one request may name; a filter may match any number. */
export const mostDevices = 10_000;

const actions = [
  'label',
  'unlabel',
  'mute',
  'unmute',
  'remove',
  'limits',
  'profile',
  'label-limits',
  'restore',
] as const;
type ActionName = (typeof actions)[number];

const takesLabels = (action: ActionName) => action === 'label' || action === 'unlabel';

const takesReason: ActionName[] = ['mute', 'limits', 'profile', 'label-limits', 'restore'];

const numbers = z.record(z.string().max(40), z.number()).optional();

const LimitChange = z
  .strictObject({
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    cause: z.int().min(0).max(31).meta({ description: "Which of the event's causes, from 0." }),
    threshold: numbers.meta({
      description: '`forMs`, the delay, also where there is none yet; 0 removes it.',
    }),
    thresholds: numbers,
    severity: Severity.optional().meta({ description: "How bad the event's alarm is." }),
    name: z
      .strictObject({ from: z.string(), to: Text.max(1_000) })
      .optional()
      .meta({
        description:
          'Another name for the event, which may contain the number. `from`: what it is called now; with another name it is 400.',
      }),
  })
  .meta({
    id: 'LimitChange',
    description:
      'New numbers of a cause, by their names, and a new name or severity of its event. Only what is there is replaced.',
  });

const changes = z.array(LimitChange).min(1).max(100);
const purposeUuids = z.array(uuidParam).max(256);
const purposes = z.array(Purpose).max(256);

const LimitsOf = z
  .object({
    ifPId: uuidParam.nullable().meta({
      description:
        'A profile: devices that have it, or one with the same purposes. null: devices without a profile.',
    }),
    changes: changes.optional().meta({ description: 'For a profile.' }),
    purposeUuids: purposeUuids.optional().meta({
      description: 'For devices without a profile: stored purposes, which come first.',
    }),
    purposes: purposes.optional().meta({ description: 'For devices without a profile.' }),
  })
  .superRefine(({ ifPId, changes: changed, ...given }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if ((ifPId === null) === (changed !== undefined))
      say('changes', ifPId === null ? 'a device without a profile takes none' : 'is required');
    for (const [path, value] of Object.entries(given))
      if (ifPId !== null && value !== undefined) say(path, 'only without a profile');
    if (ifPId === null && !given.purposeUuids?.length && !given.purposes?.length)
      say('purposeUuids', 'expected at least one purpose, here or in purposes');
  })
  .meta({ id: 'LimitsOfProfile' });

/** Profiles whose limits one action replaces. */
const mostProfiles = 20;

/** The body of POST /v2/devices/actions. */
export const DeviceAction = z
  .object({
    action: z.enum(actions),
    labels: Labels.min(1).optional().meta({ description: 'For label and unlabel.' }),
    untilTs: z.int().min(0).optional().meta({ description: 'For mute: until when, ms.' }),
    reason: Text.max(200)
      .optional()
      .meta({ description: 'For mute, and what changes profiles: the reason, visible to others.' }),
    ifPId: uuidParam.optional().meta({
      description:
        'For limits: a profile. Only devices that have it, or one with the same purposes, change.',
    }),
    changes: changes.optional().meta({ description: 'For limits.' }),
    limits: z
      .array(LimitsOf)
      .min(1)
      .max(mostProfiles)
      .refine((all) => new Set(all.map(({ ifPId }) => ifPId)).size === all.length, {
        message: 'each profile once',
      })
      .optional()
      .meta({ description: 'For limits, in the place of ifPId and changes: of several profiles.' }),
    purposeUuids: purposeUuids.optional().meta({
      description: 'For profile: stored purposes, which come first.',
    }),
    purposes: purposes.optional().meta({ description: 'For profile.' }),
    deviceAuthUuids: z.array(uuidParam).min(1).max(mostDevices).optional(),
    filter: DeviceFilter.optional(),
    jobId: uuidParam.optional().meta({
      description: 'The devices of a job that ended within the last hour, to undo it.',
    }),
  })
  .superRefine(({ action, labels, untilTs, reason, ...which }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (takesLabels(action) !== (labels !== undefined))
      say('labels', takesLabels(action) ? 'expected at least one' : `${action} takes none`);
    if ((action === 'mute') !== (untilTs !== undefined))
      say('untilTs', action === 'mute' ? 'expected a time' : `${action} takes none`);
    if (reason !== undefined && !takesReason.includes(action))
      say('reason', `${action} takes none`);
    const { deviceAuthUuids, filter, jobId, limits, ifPId, changes: changed } = which;
    const takesOne = action === 'limits' && limits === undefined;
    for (const [path, value] of Object.entries({ ifPId, changes: changed }))
      if (takesOne !== (value !== undefined))
        say(
          path,
          takesOne ? 'is required' : `${action} takes none${limits ? ' beside limits' : ''}`,
        );
    if (action !== 'limits' && limits !== undefined) say('limits', `${action} takes none`);
    const given = { purposeUuids: which.purposeUuids, purposes: which.purposes };
    for (const [path, value] of Object.entries(given))
      if (action !== 'profile' && value !== undefined) say(path, `${action} takes none`);
    if (action === 'profile' && !given.purposeUuids?.length && !given.purposes?.length)
      say('purposeUuids', 'expected at least one purpose, here or in purposes');
    if (action === 'restore' && jobId === undefined) say('jobId', 'expected the job to undo');
    if ([deviceAuthUuids, filter, jobId].filter((given) => given !== undefined).length !== 1)
      say('filter', 'expected exactly one of deviceAuthUuids, filter and jobId');
  });
export type DeviceAction = z.output<typeof DeviceAction>;

/** What is asked of the profiles of devices, by a body that is valid; null: nothing. */
export function askedChange({
  ifPId,
  changes: changed,
  limits,
  ...given
}: DeviceAction): AskedChange | null {
  if (ifPId && changed) return { limits: [{ path: '', ifPId, changes: changed }] };
  if (limits) return { limits: limits.map((each, n) => askedLimits(each, `/limits/${n}`)) };
  return given.purposeUuids || given.purposes ? askedPurposes(given) : null;
}

const askedLimits = (
  { ifPId, changes: changed = [], ...given }: z.output<typeof LimitsOf>,
  path: string,
) =>
  ifPId === null ? { path, ifPId, ...askedPurposes(given) } : { path, ifPId, changes: changed };

const askedPurposes = (given: Pick<DeviceAction, 'purposeUuids' | 'purposes'>) => ({
  purposeUuids: given.purposeUuids ?? [],
  purposes: given.purposes ?? [],
});

type AskedPurposes = { purposeUuids: string[]; purposes: Purpose[] };

/** `src/profiles` does it. `path`: of limits in the request. */
export type AskedChange =
  | {
      limits: ({ path: string } & (
        { ifPId: string; changes: z.output<typeof changes> } | ({ ifPId: null } & AskedPurposes)
      ))[];
    }
  | AskedPurposes;

/** What is stored of the action for its job. */
export type StoredAction = {
  action: ActionName;
  labels?: string[];
  untilTs?: number;
  reason?: string;
  /** For profile: the names of its purposes. */
  purposes?: string[];
  /** The job whose devices these are. */
  undoes?: string;
  /** For limits, profile, label-limits and restore: `src/profiles` defines it. */
  change?: object;
};

const PurposeNames = z
  .array(z.object({ puId: z.int(), name: z.string() }).meta({ id: 'NamedPurpose' }))
  .optional();

/** The answer of POST /v2/devices/actions/preview. */
export const ActionPreview = z.object({
  of: z.int().meta({ description: 'How many devices the action would be applied to.' }),
  differences: z
    .array(
      z
        .object({
          ifPId: z.guid().meta({ description: 'Of which profile.' }),
          puId: z.int(),
          stId: z.int(),
          evId: z.int(),
          cause: z.int().optional(),
          sId: z.string().optional(),
          limit: z
            .string()
            .optional()
            .meta({ description: 'The name of the number.', example: 'isGt' }),
          from: z.number().optional(),
          to: z.number().optional(),
          severity: z.object({ from: Severity, to: Severity }).optional(),
          name: z
            .object({ from: z.string(), to: z.string() })
            .optional()
            .meta({ description: 'The event gets another name.' }),
        })
        .meta({ id: 'LimitDifference' }),
    )
    .meta({
      description:
        'For limits: each number, severity and name that changes, the same on all devices of a profile.',
    }),
  profiles: z
    .array(
      z
        .object({
          pId: z
            .guid()
            .nullable()
            .meta({ description: 'One with these purposes; null: no profile.' }),
          devices: z.int(),
          goes: PurposeNames,
          comes: PurposeNames,
          stays: PurposeNames,
          changed: z
            .array(
              z
                .object({
                  puId: z.int(),
                  name: z.string(),
                  before: Purpose.optional(),
                  after: Purpose.optional(),
                })
                .meta({ id: 'ChangedPurpose' }),
            )
            .optional(),
        })
        .meta({ id: 'PreviewedProfile' }),
    )
    .meta({
      description:
        'The profiles that the devices have, each with its purposes once, most devices first. `goes`, `comes` and ' +
        '`stays`, for profile: purposes, if the new profile is installed; `changed`: those that keep their name and ' +
        'say something else, as a whole as far as 1 MiB reaches. Absent beyond 4 MiB of purposes, or 1 MiB of names.',
    }),
  devices: z
    .array(
      z
        .object({
          deviceAuthUuid: deviceUuid,
          outcome: z.enum(['install', 'unchanged', 'changed', 'no-such-device']).meta({
            description:
              'install: it gets the new profile. unchanged: it has these purposes already. changed: it has another profile ' +
              'than `ifPId`, and keeps it.',
          }),
          profile: z
            .int()
            .meta({ description: 'Which of `profiles` it has, from 0; -1: no such device.' }),
        })
        .meta({ id: 'PreviewedDevice' }),
    )
    .meta({ description: `The first ${mostDevices} of them.` }),
  warnings: Warnings.meta({
    description:
      'What may not work as intended on these devices, as for `POST /v2/devices/profile`.',
  }),
  timestamp,
});
export type ActionPreview = z.infer<typeof ActionPreview>;
