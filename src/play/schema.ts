import { z } from 'zod';
import { Purpose } from '../contract/purpose.ts';
import { deviceUuid, exampleIds, timestamp } from '../http/schema.ts';

const mostDevices = 10_000;
const mostPurposes = 20;
const dayMs = 86_400_000;
const mostDays = 366;

const Asked = z
  .object({
    purposeUuids: z.array(z.string()).max(mostPurposes).default([]),
    purposes: z.array(Purpose).max(mostPurposes).default([]),
  })
  .superRefine(({ purposeUuids, purposes }, context) => {
    const count = purposeUuids.length + purposes.length;
    if (count >= 1 && count <= mostPurposes) return;
    const message = `give 1 to ${mostPurposes} purposes, here or in purposes`;
    context.addIssue({ code: 'custom', path: ['purposeUuids'], message });
  })
  .meta({
    id: 'BacktestProfile',
    description: 'Stored purposes come first, in the given order, then those given in full.',
  });
export type AskedProfile = z.infer<typeof Asked>;

export const BacktestRequest = z
  .object({
    candidate: Asked,
    against: z
      .union([z.literal('recorded'), Asked])
      .nullable()
      .default(null)
      .meta({
        description:
          'What the candidate is compared with: what was recorded, or another profile played on the same values. ' +
          'Null: nothing.',
      }),
    devices: z
      .array(deviceUuid)
      .min(1)
      .max(mostDevices)
      .optional()
      .meta({ description: `At most ${mostDevices} devices, by \`deviceAuthUuid\`.` }),
    label: z.string().min(1).optional().meta({ description: 'The devices with this label.' }),
    start: timestamp.meta({ description: 'Of arrival, ms.' }),
    end: timestamp.optional().meta({ description: 'Inclusive; now, if absent.' }),
  })
  .superRefine(({ devices, label, start, end }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if ((devices === undefined) === (label === undefined))
      say('devices', 'name either devices or a label');
    if (end !== undefined && end < start) say('end', 'expected a time after start');
    if (end !== undefined && end - start > mostDays * dayMs)
      say('start', `expected a range of at most ${mostDays} days`);
  });

/** The longest range, for a request without `end`. */
export const longestMs = mostDays * dayMs;

const at = { puId: z.int(), stId: z.int(), evId: z.int() };
const engine = z.object({ pId: z.string(), ...at, ts: timestamp });
const nullableTs = timestamp.nullable();
const counts = {
  values: z.int(),
  firings: z.int(),
  moves: z.int(),
  alarms: z.int(),
  differences: z.int(),
};

/** One line of the answer. */
export const BacktestLine = z
  .discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('started'),
        playedFromTs: timestamp.meta({
          description:
            'Before `start` by the longest time that a cause looks back, at most 31 days.',
        }),
        startTs: timestamp,
        endTs: timestamp,
        devices: z.int(),
      })
      .meta({ id: 'BacktestStarted' }),
    z
      .object({
        kind: z.literal('firing'),
        deviceAuthUuid: deviceUuid,
        engine,
        senses: z.array(z.looseObject({ sId: z.string(), val: z.number(), ts: timestamp })),
        why: z.array(z.looseObject({ sId: z.string() })).optional(),
        arrivedTs: timestamp,
        record: z.boolean().meta({ description: 'Whether it would be recorded as an event.' }),
      })
      .meta({ id: 'BacktestFiring' }),
    z
      .object({
        kind: z.literal('move'),
        deviceAuthUuid: deviceUuid,
        engine,
        event: z.enum(['purposeChanged', 'stateChanged']),
        newValue: z.int(),
        oldValue: z.int(),
      })
      .meta({ id: 'BacktestMove' }),
    z
      .object({
        kind: z.literal('alarm'),
        deviceAuthUuid: deviceUuid,
        ...at,
        sinceTs: timestamp,
        lastFiringTs: timestamp,
        firings: z.int(),
        beganTs: nullableTs,
        overTs: nullableTs,
        closedTs: nullableTs.meta({ description: 'Null: it was open at the end.' }),
        closedBy: z.string().nullable(),
      })
      .meta({ id: 'BacktestAlarm' }),
    z
      .object({
        kind: z.literal('difference'),
        deviceAuthUuid: deviceUuid,
        of: z.enum(['firing', 'alarm']),
        ...at,
        ts: timestamp,
        only: z.enum(['candidate', 'against']).optional(),
        earlierMs: z.int().optional().meta({
          description:
            'Both have it: by how much that of the candidate is earlier; negative: later.',
        }),
      })
      .meta({ id: 'BacktestDifference' }),
    z
      .object({
        kind: z.literal('device'),
        deviceAuthUuid: deviceUuid,
        ...counts,
        caveats: z
          .array(z.enum(['clock-break', 'no-arrivals', 'listening-unknown', 'not-all-compared']))
          .meta({ description: 'Why the result may differ from what would have happened.' }),
      })
      .meta({ id: 'BacktestDevice' }),
    z.object({ kind: z.literal('done'), devices: z.int(), ...counts }).meta({ id: 'BacktestDone' }),
  ])
  .meta({ id: 'BacktestLine' });

/** A request that works as it is, except for the device. */
export const backtestExample = {
  candidate: {
    purposes: [
      {
        puId: 1,
        initStId: 1,
        states: [
          {
            stId: 1,
            events: [
              {
                evId: 1,
                eventLog: true,
                causes: [{ sId: '0x10', threshold: { forMs: 600_000 }, thresholds: { isGt: 8 } }],
                actions: { alarm: true },
              },
            ],
          },
        ],
      },
    ],
  },
  against: 'recorded' as const,
  devices: [exampleIds.device],
  start: 1_767_225_600_000,
  end: 1_767_830_400_000,
};
