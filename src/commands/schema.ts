import { z } from 'zod';
import {
  commandJson,
  commandJsonRule,
  CommandName,
  commandStates,
  type CommandState,
} from '../contract/command.ts';
import { Text } from '../contract/values.ts';
import {
  cursorQuery,
  describeAs,
  exampleIds,
  DeviceParams,
  deviceUuid,
  devicesQuery,
  labelQuery,
  limitQuery,
  namesOf,
  timestamp,
  uuidParam,
} from '../http/schema.ts';

const maxReason = 1_024;

/** The body of POST …/commands. */
export const NewCommand = z
  .object({
    name: CommandName,
    params: z
      .unknown()
      .refine((value) => value === undefined || commandJson(value) !== null, commandJsonRule)
      .optional()
      .meta({ description: 'Any JSON; the device says what it expects.' }),
    expiresTs: z.int().min(0).optional().meta({
      description:
        'Until when the device may receive it, ms since 1970; a day if absent, at most 31 days.',
    }),
    reason: Text.max(maxReason).optional().meta({ description: 'Why, for those who look later.' }),
  })
  .meta({ id: 'NewCommand' });
export type NewCommand = z.infer<typeof NewCommand>;

const maxWaitSeconds = 25;

/** `wait` of a query, in ms. */
const waitQuery = z
  .string()
  .regex(/^\d{1,3}$/, `expected whole seconds, at most ${maxWaitSeconds}`)
  .transform((text) => Math.min(Number(text), maxWaitSeconds) * 1_000)
  .optional()
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, {
        type: 'integer',
        minimum: 0,
        maximum: maxWaitSeconds,
        description: 'Answers when the command has ended, or after this many seconds.',
      });
    },
  });

export const WaitQuery = z.object({ wait: waitQuery });

export const CommandParams = DeviceParams.extend({
  commandId: uuidParam.meta({ example: exampleIds.command }),
});

const CommandCursor = z.object({ id: z.int().min(0) });

const stateNames = z
  .string()
  .transform(namesOf)
  .pipe(z.array(z.enum(commandStates)))
  .optional()
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, { type: 'string', description: 'Only these states: queued,sent' });
    },
  });

const page = { limit: limitQuery(100), cursor: cursorQuery(CommandCursor) };

export const CommandsQuery = z.object({
  state: stateNames,
  name: CommandName.optional().meta({ description: 'Only commands of this name.' }),
  ...page,
});
export const AllCommandsQuery = CommandsQuery.extend({ devices: devicesQuery, label: labelQuery });
export type AllCommandsQuery = z.output<typeof AllCommandsQuery>;

/** What a device told. It is text and JSON from outside: show it as text. */
const told = {
  progress: z.number().optional().meta({ description: 'Percent.' }),
  result: z.unknown().optional().meta({ description: 'JSON of the device.' }),
  text: z.string().optional().meta({ description: 'Text of the device. Show it as text only.' }),
};

const LateCommandAnswer = z.object({ state: z.enum(commandStates), ...told, ts: timestamp }).meta({
  id: 'LateCommandAnswer',
  description: 'What the device said after the command had ended.',
});

const Command = z
  .object({
    commandId: z.guid(),
    deviceAuthUuid: deviceUuid,
    name: CommandName,
    params: z.unknown().optional(),
    reason: z.string().optional(),
    state: z.enum(commandStates).meta({ id: 'CommandState' }),
    createdTs: timestamp,
    expiresTs: timestamp,
    sentTs: timestamp.optional(),
    acceptedTs: timestamp.optional(),
    runningTs: timestamp.optional(),
    endedTs: timestamp.optional(),
    ...told,
    late: LateCommandAnswer.optional(),
  })
  .meta({ id: 'Command' });
type Command = z.input<typeof Command>;

export const CommandResponse = Command.extend({ timestamp }).meta({ id: 'CommandResponse' });

export const CancelledCommand = CommandResponse.extend({
  sent: z.boolean().meta({
    description: 'It was on its way to the device, which may carry it out all the same.',
  }),
}).meta({ id: 'CancelledCommand' });

export const CommandList = z
  .object({ commands: z.array(Command), timestamp })
  .meta({ id: 'CommandList' });

/** A command as it is stored. JSON as text; times in ms. */
export type CommandRow = {
  id: number;
  commandId: string;
  deviceAuthUuid: string;
  name: string;
  params: string | null;
  reason: string | null;
  state: CommandState;
  createdTs: number;
  expiresTs: number;
  sentTs: number | null;
  acceptedTs: number | null;
  runningTs: number | null;
  endedTs: number | null;
  progress: number | null;
  result: string | null;
  text: string | null;
  late: string | null;
  /** How often it was handed to a connector. */
  handed: number;
};

/** A command as routes and streams tell it. */
export function toCommand({
  id: _id,
  handed: _handed,
  params,
  result,
  late,
  ...row
}: CommandRow): Command {
  const there = Object.entries(row).filter(([, value]) => value !== null);
  return {
    ...(Object.fromEntries(there) as Omit<Command, 'params' | 'result' | 'late'>),
    ...(params === null ? {} : { params: JSON.parse(params) as unknown }),
    ...(result === null ? {} : { result: JSON.parse(result) as unknown }),
    ...(late === null ? {} : { late: readLate(late) }),
  };
}

function readLate(text: string): Command['late'] {
  const { result, ...late } = JSON.parse(text) as { result?: string } & NonNullable<
    Command['late']
  >;
  return result === undefined ? late : { ...late, result: JSON.parse(result) as unknown };
}
