import { z } from 'zod';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';

export const JobParams = z.object({ jobId: uuidParam.meta({ example: exampleIds.job }) });

/** `stopped`: by whoever asked for it; what was done by then stays done. */
export const JobState = z.enum(['running', 'done', 'stopped']);
export type JobState = z.infer<typeof JobState>;

const JobFailure = z
  .object({
    deviceAuthUuid: z.guid(),
    reason: z.string().meta({
      description:
        'no-such-device, too-many-labels, took-too-long, or internal-error: the log says more.',
    }),
  })
  .meta({ id: 'JobFailure' });
export type JobFailure = z.infer<typeof JobFailure>;

const common = {
  action: z.string(),
  labels: z.array(z.string()).optional().meta({ description: 'Of label and unlabel.' }),
  untilTs: timestamp.optional().meta({ description: 'Of mute.' }),
  state: JobState,
  done: z.int().meta({ description: 'Devices that had their turn, failed ones too.' }),
  of: z.int().meta({ description: 'Devices of the job.' }),
  startedTs: timestamp,
  endedTs: timestamp.optional(),
};

export const Job = z.object({
  ...common,
  failed: z.array(JobFailure).meta({ description: 'The first thousand.' }),
  failedMore: z.int().optional().meta({ description: 'How many more have failed.' }),
  timestamp,
});

export const JobList = z.object({
  jobs: z.array(
    z
      .object({
        jobId: z.guid(),
        ...common,
        failures: z.int().meta({ description: 'Devices with which it could not be done.' }),
      })
      .meta({ id: 'JobEntry' }),
  ),
  timestamp,
});

export type JobList = z.infer<typeof JobList>;
export type Job = z.infer<typeof Job>;

export const StartedJob = z.object({ jobId: z.guid(), timestamp });
export type StartedJob = z.infer<typeof StartedJob>;
