import { z } from 'zod';
import { AlarmChange } from '../contract/alarm.ts';
import { commandStates } from '../contract/command.ts';
import { presences } from '../contract/values.ts';
import { DomainError } from '../errors.ts';
import { devicesQuery, labelQuery, sensesQuery, timestamp } from '../http/schema.ts';
import type { Reach } from './reach.ts';
import type { StreamPiece } from './server-sent.ts';

/**
 * What one connection can carry. `alarms`: changes of alarms. `devices`: which devices connect and disconnect.
 * `commands`: the states of commands.
 */
const streamKinds = ['events', 'measurements', 'alarms', 'devices', 'commands'] as const;
export type StreamKind = (typeof streamKinds)[number];

export type AskedSource = {
  kinds: ReadonlySet<StreamKind>;
  reach: Reach;
  /** For measurements: only these senses, and at most this many values of each per second. */
  senses: readonly string[] | undefined;
  maxHz: number | undefined;
  /** The last `position` of a piece that the reader has; null for a new reader. */
  from: string | null;
};

/** One part of a stream: it is joined, and read once. */
export type Source = {
  /** Ends after `leave`, and when the reader is dropped. */
  pieces: (until: AbortSignal) => AsyncGenerator<StreamPiece<string>>;
  leave: () => void;
};

/** Throws `invalid-input` if `from` is no position of this source. */
export type OpenSource = (asked: AskedSource) => Promise<Source>;

/** The parts of a stream with positions of their own: events with alarms, measurements, devices' presence, commands. */
const sourceNames = ['events', 'measurements', 'devices', 'commands'] as const;
export type SourceName = (typeof sourceNames)[number];

const letters: Record<SourceName, string> = {
  events: 'e',
  measurements: 'm',
  devices: 'd',
  commands: 'c',
};

/** Writes the positions of a stream's parts as the id of a server-sent event. */
export function writeIds(positions: ReadonlyMap<SourceName, string>): string {
  const parts = sourceNames.flatMap((name) => {
    const position = positions.get(name);
    return position === undefined ? [] : [`${letters[name]}=${position}`];
  });
  return parts.join(';');
}

/** Parses the positions in an id. Parts that the reader's stream did not have are missing. Throws `invalid-input`. */
export function parseIds(lastEventId: string): Map<SourceName, string> {
  const positions = readIds(lastEventId);
  if (!positions) throw invalidLastEventId();
  return positions;
}

/** Like `parseIds`, but null for text that is no id. */
function readIds(lastEventId: string): Map<SourceName, string> | null {
  const positions = new Map<SourceName, string>();
  if (lastEventId === '') return positions;
  for (const part of lastEventId.split(';')) {
    const name = sourceNames.find((one) => part.startsWith(`${letters[one]}=`));
    if (!name || positions.has(name)) return null;
    positions.set(name, part.slice(2));
  }
  return positions;
}

export function invalidLastEventId(): DomainError {
  const problems = [{ path: 'Last-Event-ID', message: 'is not an id of this stream' }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}

/** The ticket in the reference's examples. */
export const exampleTicket = 'the-ticket-of-the-answer';

const maxDevices = 500;
const maxSenses = 256;
const leastHz = 0.1;
const mostHz = 100;
/** The ids that streams send stay below 1 KB. */
const maxIdLength = 2_048;

/** Why a reader should request the list of devices again. */
const devicesReasons = ['changed', 'many', 'missed'] as const;

/** Narrows what a stream carries of its kinds. */
export const StreamFilters = z.strictObject({
  devices: z
    .array(z.guid('is not a deviceAuthUuid').toLowerCase())
    .min(1)
    .max(maxDevices)
    .optional()
    .meta({ description: `Only these devices, by \`deviceAuthUuid\`; at most ${maxDevices}.` }),
  label: labelQuery,
  measurementDevices: z
    .array(z.guid('is not a deviceAuthUuid').toLowerCase())
    .min(1)
    .max(maxDevices)
    .optional()
    .meta({
      description:
        'For measurements: only these devices, instead of `devices`. A page can then show the ' +
        `values of a few devices and the alarms of all. At most ${maxDevices}.`,
    }),
  senses: z
    .array(z.string().max(1_024))
    .min(1)
    .max(maxSenses)
    .optional()
    .meta({ description: 'For measurements: only these senses.' }),
  maxHz: z.number().min(leastHz).max(mostHz).optional().meta({
    description:
      'For measurements: at most this many values of each sense per second; the newest are sent.',
  }),
});
export type StreamFilters = z.infer<typeof StreamFilters>;

/** The query of GET /v2/measurements/stream. */
export const MeasurementStreamQuery = z.strictObject({
  devices: devicesQuery,
  label: labelQuery,
  senses: sensesQuery,
  maxHz: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,3})?$/, `expected a number from ${leastHz} to ${mostHz}`)
    .transform(Number)
    .refine((hz) => hz >= leastHz && hz <= mostHz, `expected a number from ${leastHz} to ${mostHz}`)
    .optional()
    .meta({
      description: 'At most this many values of each sense per second; the newest are sent.',
      example: '1',
    }),
});

/** The body of POST /v2/streams. */
export const NewStream = z.strictObject({
  kinds: z
    .array(z.enum(streamKinds))
    .min(1, 'name at least one kind')
    .max(streamKinds.length)
    .overwrite((kinds) => [...new Set(kinds)]),
  filters: StreamFilters.default({}),
  lastEventId: z
    .string()
    .max(maxIdLength)
    .refine((id) => readIds(id) !== null, 'is not an id of a stream')
    .optional()
    .meta({
      description:
        'Where to resume if the request that opens the stream has no `Last-Event-ID`: a page ' +
        'that was closed or wants other devices continues with a new address.',
    }),
});
export type NewStream = z.infer<typeof NewStream>;

export const MadeStream = z.object({
  url: z.string().meta({
    description:
      'The path and query to open, on the host of this request. Anyone who has it can open it.',
  }),
  expiresTs: timestamp.meta({
    description: 'The address can be opened until then, and again after each disconnection.',
  }),
  timestamp,
});

/** With the SSE name `measurement`. */
const StreamedMeasurement = z
  .object({
    deviceAuthUuid: z.guid(),
    sId: z.string(),
    val: z.union([z.number(), z.object({ lat: z.number(), long: z.number() })]),
    ts: timestamp,
  })
  .meta({ id: 'StreamedMeasurement' });

/** With the SSE name `opened`. */
const StreamOpened = z
  .object({
    timestamp,
    resumed: z.boolean(),
    start: timestamp.optional().meta({ description: 'Nothing before this time is sent again.' }),
    late: z.literal('in-history-only').optional().meta({
      description:
        'Values that arrived in the meantime and are older than the last value sent of their sense.',
    }),
  })
  .meta({ id: 'StreamOpened' });

/** With the SSE name `dropped`: the last message before the service ends the stream. */
const StreamDropped = z
  .object({ reason: z.enum(['slow-reader', 'overloaded', 'interrupted']) })
  .meta({ id: 'StreamDropped' });

/** With the SSE name `device`. */
export const StreamedDevice = z
  .object({
    deviceAuthUuid: z.guid(),
    presence: z.enum(presences),
    lastSeenTs: timestamp,
  })
  .meta({
    id: 'StreamedDevice',
    description: 'A device connected or disconnected; its current state.',
  });

export type StreamedDevice = z.infer<typeof StreamedDevice>;

/** With the SSE name `devices`. */
const StreamedDevices = z.object({ reason: z.enum(devicesReasons) }).meta({
  id: 'StreamedDevices',
  description:
    'Request the list again. `changed`: devices were added, removed, labelled or reconfigured. ' +
    '`many`: more devices connected or disconnected than are named. `missed`: changes while ' +
    'the stream was away, or while other processes could not be reached, are not reported.',
});

/** With the SSE name `command`. */
const StreamedCommand = z
  .object({
    commandId: z.guid(),
    deviceAuthUuid: z.guid(),
    name: z.string(),
    state: z.enum(commandStates),
    progress: z.number().optional(),
  })
  .meta({
    id: 'StreamedCommand',
    description: 'A command was given or changed; its current state.',
  });
export type StreamedCommand = z.infer<typeof StreamedCommand>;

/** With the SSE name `commands`. */
const StreamedCommands = z.object({ reason: z.enum(['many', 'missed']) }).meta({
  id: 'StreamedCommands',
  description:
    'Request the list again. `many`: more commands changed than are named. `missed`: changes while the stream was ' +
    'away, or while other processes could not be reached, are not reported.',
});

export const StreamedMessage = z
  .union([
    StreamedMeasurement,
    StreamOpened,
    StreamDropped,
    AlarmChange,
    StreamedDevice,
    StreamedDevices,
    StreamedCommand,
    StreamedCommands,
  ])
  .meta({ id: 'StreamMessage' });
