import { z } from 'zod';
import { AuditActor } from '../audit/audit.ts';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';

/* What is said of jobs over HTTP. */

export const JobParams = z.object({ jobId: uuidParam.meta({ example: exampleIds.job }) });

/** `stopped`: on request. What was done by then stays done. */
const JobState = z.enum(['running', 'done', 'stopped']);
export type JobState = z.infer<typeof JobState>;

const deviceName = z.string().optional().meta({
  description:
    'As it is now; absent if there is no such device, and for keys that are confined to labels.',
});

const JobFailure = z
  .object({
    deviceAuthUuid: z.guid(),
    deviceName,
    reason: z.string().meta({
      description:
        'no-such-device, too-many-labels, forgotten (its former profile is not stored any more), quota-exceeded, ' +
        'took-too-long, or internal-error: the log has the details.',
    }),
  })
  .meta({ id: 'JobFailure' });
export type JobFailure = z.infer<typeof JobFailure>;

const KeptDevice = z
  .object({
    deviceAuthUuid: z.guid(),
    deviceName,
    reason: z.enum(['changed', 'unchanged']).meta({
      description:
        'changed: it has another profile than the action was for. unchanged: it has what it would get.',
    }),
  })
  .meta({ id: 'KeptDevice' });
export type KeptDevice = z.infer<typeof KeptDevice>;

const FailedAlarm = z
  .object({
    alarmId: z.int(),
    deviceAuthUuid: z.guid().optional().meta({ description: 'Absent if there is no such alarm.' }),
    deviceName,
    eventName: z.string().optional().meta({ description: 'Absent if there is no such alarm.' }),
    reason: z.string().meta({
      description:
        'condition-holds (it was not closed), no-such-alarm, conflict (it cannot be opened again), took-too-long, or ' +
        'internal-error: the log has the details.',
    }),
    values: z
      .array(z.object({ sId: z.string(), val: z.number(), ts: timestamp }))
      .optional()
      .meta({ description: 'With condition-holds: the newest values of its senses.' }),
  })
  .meta({ id: 'JobFailedAlarm' });
export type FailedAlarm = z.infer<typeof FailedAlarm>;

const common = {
  action: z.string(),
  labels: z.array(z.string()).optional().meta({ description: 'For label and unlabel.' }),
  untilTs: timestamp.optional().meta({ description: 'For mute and snooze.' }),
  pId: z.guid().optional().meta({ description: 'For limits and profile: the new profile.' }),
  pIds: z.array(z.guid()).optional().meta({
    description: 'For limits of several profiles: the new ones, in their order.',
  }),
  purposes: z
    .array(z.string())
    .optional()
    .meta({ description: 'For profile: the names of its first 20 purposes.' }),
  state: JobState,
  done: z.int().meta({
    description: 'Devices or alarms processed so far, including those that did not change.',
  }),
  of: z.int().meta({ description: 'All devices or alarms of the job.' }),
  kept: z.int().meta({ description: 'How many devices keep what they had. That is no failure.' }),
  startedTs: timestamp,
  endedTs: timestamp.optional(),
  by: AuditActor.meta({ description: 'Who started it.' }),
  keyName: z.string().optional().meta({ description: 'Of the API key that started it.' }),
  undo: z
    .object({
      action: z.string().meta({ example: 'restore' }),
      untilTs: timestamp.meta({ description: 'Until then; its devices are forgotten later.' }),
    })
    .meta({ id: 'JobUndo' })
    .optional()
    .meta({
      description:
        'The action that takes the job back, with its `jobId` (and its `labels`). Absent: nothing does, or it was done.',
    }),
  undoneBy: z.guid().optional().meta({
    description: 'The job that takes this one back. Absent if it was stopped.',
  }),
};

export const Job = z.object({
  ...common,
  failed: z.array(JobFailure).meta({ description: 'Devices: the first thousand.' }),
  failedAlarms: z
    .array(FailedAlarm)
    .optional()
    .meta({ description: 'Alarms, of a job on alarms: the first thousand.' }),
  failedMore: z.int().optional().meta({ description: 'How many more failed.' }),
  keptDevices: z
    .array(KeptDevice)
    .optional()
    .meta({ description: 'Those that keep what they had: the first thousand.' }),
  timestamp,
});

const JobEntry = z
  .object({
    jobId: z.guid(),
    ...common,
    failures: z.int().meta({ description: 'For how many devices or alarms it failed.' }),
  })
  .meta({ id: 'JobEntry' });
export type JobEntry = z.infer<typeof JobEntry>;

export const JobList = z.object({ jobs: z.array(JobEntry), timestamp });

export type JobList = z.infer<typeof JobList>;
export type Job = z.infer<typeof Job>;

export const StartedJob = z.object({ jobId: z.guid(), timestamp });
export type StartedJob = z.infer<typeof StartedJob>;
