import { z } from 'zod';
import { Purpose } from '../contract/purpose.ts';
import {
  cursorQuery,
  deviceUuid,
  exampleIds,
  limitQuery,
  timestamp,
  uuidParam,
} from '../http/schema.ts';
import type { LineKind } from './store.ts';

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

const mostMapped = 1_000;
const At = z.object({ puId: z.int(), stId: z.int(), evId: z.int() }).meta({ id: 'BacktestEvent' });

export const BacktestRequest = z
  .object({
    name: z.string().min(1).max(200).optional().meta({ description: 'For lists, if it is kept.' }),
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
    map: z
      .array(z.object({ from: At, to: At }).meta({ id: 'BacktestSameEvent' }))
      .max(mostMapped)
      .default([])
      .meta({
        description:
          'Events that are compared although they are numbered otherwise: `from` the candidate, `to` what it is compared with.',
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
  .superRefine(({ devices, label, start, end, map, against }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if ((devices === undefined) === (label === undefined))
      say('devices', 'name either devices or a label');
    if (map.length > 0 && against === null) say('map', 'expected with against only');
    for (const side of ['from', 'to'] as const)
      if (new Set(map.map((pair) => JSON.stringify(pair[side]))).size < map.length)
        say('map', `names an event twice in ${side}`);
    if (end !== undefined && end < start) say('end', 'expected a time after start');
    if (end !== undefined && end - start > mostDays * dayMs)
      say('start', `expected a range of at most ${mostDays} days`);
  });

export type BacktestRequest = z.output<typeof BacktestRequest>;

/** The longest range, for a request without `end`. */
export const longestMs = mostDays * dayMs;

const at = { puId: z.int(), stId: z.int(), evId: z.int() };
const engine = z.object({ pId: z.string(), ...at, ts: timestamp });
const nullableTs = timestamp.nullable();
const counts = {
  values: z.int().meta({ description: 'Measurements that were read.' }),
  firings: z.int(),
  moves: z.int(),
  alarms: z.int(),
  differences: z.int(),
};
const playedFromTs = timestamp.meta({
  description: 'Before `start` by the longest time that a cause looks back, at most 31 days.',
});
const caveats = z
  .array(z.enum(['clock-break', 'no-arrivals', 'listening-unknown', 'not-all-compared']))
  .meta({ description: 'Why the result may differ from what would have happened.' });

/** The lines that are kept, by their kind. */
const lineSchemas = {
  firing: z
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
  move: z
    .object({
      kind: z.literal('move'),
      deviceAuthUuid: deviceUuid,
      engine,
      event: z.enum(['purposeChanged', 'stateChanged']),
      newValue: z.int(),
      oldValue: z.int(),
    })
    .meta({ id: 'BacktestMove' }),
  alarm: z
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
  difference: z
    .object({
      kind: z.literal('difference'),
      deviceAuthUuid: deviceUuid,
      of: z.enum(['firing', 'alarm']),
      ...at,
      ts: timestamp,
      only: z.enum(['candidate', 'against']).optional(),
      earlierMs: z.int().optional().meta({
        description: 'Both have it: by how much that of the candidate is earlier; negative: later.',
      }),
    })
    .meta({ id: 'BacktestDifference' }),
} satisfies Record<LineKind, z.ZodType>;

/** One line of an answer that is streamed. */
export const BacktestLine = z
  .discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('started'),
        playedFromTs,
        startTs: timestamp,
        endTs: timestamp,
        devices: z.int(),
      })
      .meta({ id: 'BacktestStarted' }),
    lineSchemas.firing,
    lineSchemas.move,
    lineSchemas.alarm,
    lineSchemas.difference,
    z
      .object({ kind: z.literal('device'), deviceAuthUuid: deviceUuid, ...counts, caveats })
      .meta({ id: 'BacktestDevice' }),
    z.object({ kind: z.literal('done'), devices: z.int(), ...counts }).meta({ id: 'BacktestDone' }),
  ])
  .meta({ id: 'BacktestLine' });
export type BacktestLine = z.infer<typeof BacktestLine>;

export const BacktestParams = z.object({
  backtestId: uuidParam.meta({ example: exampleIds.backtest }),
});

export const StartedBacktest = z.object({
  backtestId: z.guid().meta({ description: 'Also its `jobId`.' }),
  timestamp,
});
export type StartedBacktest = z.infer<typeof StartedBacktest>;

const summary = {
  backtestId: z.guid(),
  name: z.string().optional(),
  state: z.enum(['running', 'done', 'stopped']),
  done: z.int().meta({ description: 'Devices that were played, or given up.' }),
  of: z.int().meta({ description: 'All devices.' }),
  startTs: timestamp,
  endTs: timestamp,
  playedFromTs,
  startedTs: timestamp.meta({ description: 'When it was asked for.' }),
  endedTs: timestamp.optional(),
  pId: z.guid().optional().meta({ description: 'The profile that was installed from it.' }),
  counts: z.object(counts).meta({ id: 'BacktestCounts' }),
  caveats,
  truncated: z.array(z.string()).meta({
    description: 'Lists of which only the first million lines are kept; `counts` has all.',
  }),
};

export const BacktestSummary = z.object({ ...summary, timestamp });
export const BacktestList = z.object({
  backtests: z.array(z.object(summary).meta({ id: 'Backtest' })),
  timestamp,
});

const Place = z.object({
  device: z.int().min(0),
  nth: z.int().min(0).max(2_147_483_647),
  at: z.int().min(0).max(1_000),
});
export const LinesQuery = z.object({
  limit: limitQuery(1_000, 100),
  cursor: cursorQuery(Place),
  device: uuidParam.optional().meta({ description: 'Only of this device.' }),
});

/** The answers with lists of lines, by the kind of line. */
export const listSchemas = {
  firing: z.object({ firings: z.array(lineSchemas.firing), timestamp }),
  move: z.object({ moves: z.array(lineSchemas.move), timestamp }),
  alarm: z.object({ alarms: z.array(lineSchemas.alarm), timestamp }),
  difference: z.object({ differences: z.array(lineSchemas.difference), timestamp }),
} satisfies Record<LineKind, z.ZodType>;

export const DevicesQuery = z.object({
  limit: limitQuery(1_000, 100),
  cursor: cursorQuery(z.int().min(1)),
});

export const PlayedDevices = z.object({
  devices: z.array(
    z
      .object({
        deviceAuthUuid: deviceUuid,
        state: z
          .enum(['waiting', 'done', 'failed'])
          .meta({ description: 'failed: it was given up; the log of the service says why.' }),
        ...counts,
        caveats,
      })
      .meta({ id: 'BacktestedDevice' }),
  ),
  timestamp,
});

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
