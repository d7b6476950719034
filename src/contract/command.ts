import { z } from 'zod';
import { measureJson } from '../lib/json.ts';

/** The states of a command. The last four are ends: they are final. */
export const commandStates = [
  'queued',
  'sent',
  'accepted',
  'running',
  'done',
  'failed',
  'expired',
  'cancelled',
] as const;
export type CommandState = (typeof commandStates)[number];

/** States of a command that the device has to receive, again at each subscription. */
export const waitingStates = ['queued', 'sent'] as const satisfies readonly CommandState[];

export const isWaiting = (state: CommandState): boolean => state === 'queued' || state === 'sent';

/** States of a command that has not ended. */
export const openStates = [
  ...waitingStates,
  'accepted',
  'running',
] as const satisfies readonly CommandState[];

/** What can happen to a command. It begins as `queued`; each happening leads to the state of its name. */
type Happening = Exclude<CommandState, 'queued'>;

/** All transitions: from which states each happening is possible. */
export const commandTransitions: Record<Happening, readonly CommandState[]> = {
  sent: ['queued'],
  accepted: waitingStates,
  running: [...waitingStates, 'accepted'],
  done: openStates,
  failed: openStates,
  expired: openStates,
  cancelled: openStates,
};

/** Longest params and result, in bytes as JSON, and how deep they may nest. */
const maxJsonBytes = 16_384;
const maxJsonDepth = 32;
const maxJsonCount = 4_096;

/** The JSON of a value of a command; null if it is too long or nests too deep. */
export function commandJson(value: unknown): string | null {
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch {
    // It nests so deep that writing it exceeds the stack.
    return null;
  }
  if (Buffer.byteLength(text) > maxJsonBytes) return null;
  const { depth, parts } = measureJson(text, maxJsonDepth, maxJsonCount);
  return depth > maxJsonDepth || parts > maxJsonCount ? null : text;
}

export const commandJsonRule = `expected JSON of at most ${maxJsonBytes} bytes, ${maxJsonDepth} levels and ${maxJsonCount} parts`;

export const CommandName = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,63}$/,
    'expected a lower-case letter, then up to 63 lower-case letters, digits and hyphens',
  )
  .meta({ example: 'restart' });

/** How many characters of an answer's text are kept. */
export const maxAnswerText = 1_024;

/** A device's answer to a command. */
export const CommandAnswer = z.object({
  commandId: z.guid('expected the commandId of down/command').toLowerCase(),
  state: z.enum(['accepted', 'running', 'done', 'failed']),
  progress: z.number().min(0).max(100).optional(),
  result: z.unknown().optional(),
  text: z.string().optional(),
});
export type CommandAnswer = z.infer<typeof CommandAnswer>;

/** What a device said after the command had ended. */
export type LateAnswer = { state: CommandAnswer['state']; ts: number } & Told;

/** What an answer may tell. `result`: JSON. */
type Told = { progress?: number; result?: string; text?: string };

/** A command as far as answers and time change it. Times in ms; null: it has not been in that state. */
export type CommandProgress = {
  state: CommandState;
  createdTs: number;
  expiresTs: number;
  sentTs: number | null;
  acceptedTs: number | null;
  runningTs: number | null;
  endedTs: number | null;
  told: Told;
  late: LateAnswer | null;
};

const isEnd = (state: CommandState): boolean => !(openStates as readonly string[]).includes(state);

const timeOf = {
  sent: 'sentTs',
  accepted: 'acceptedTs',
  running: 'runningTs',
  done: 'endedTs',
  failed: 'endedTs',
  expired: 'endedTs',
  cancelled: 'endedTs',
} as const satisfies Record<Happening, keyof CommandProgress>;

/**
 * The command after something happened at `ts`, which is never before an earlier time of it; the same object if that
 * is not possible from its state.
 */
export function happen(command: CommandProgress, what: Happening, ts: number): CommandProgress {
  if (!commandTransitions[what].includes(command.state)) return command;
  const { createdTs, sentTs, acceptedTs, runningTs } = command;
  const notBefore = Math.max(createdTs, sentTs ?? 0, acceptedTs ?? 0, runningTs ?? 0);
  return { ...command, state: what, [timeOf[what]]: Math.max(ts, notBefore) };
}

/** An answer with its result as JSON. */
type GivenAnswer = Pick<CommandAnswer, 'state'> & Told;

/**
 * The command after its device's answer at `ts`: the same object if the answer repeats what is known. A command that
 * has expired by then ends first. What comes after the end is kept once beside it, as `late`: the first answer, or the
 * first one that names an end.
 */
export function answerCommand(
  given: CommandProgress,
  answer: GivenAnswer,
  ts: number,
): CommandProgress {
  const command = given.expiresTs <= ts ? happen(given, 'expired', given.expiresTs) : given;
  const { state, ...told } = answer;
  if (isEnd(command.state)) return keepLate(command, answer, ts);
  const after = happen(command, state, ts);
  if (after !== command) return { ...after, told: { ...command.told, ...told } };
  // A repeated "running" may tell more. A redelivered one tells less, and changes nothing.
  const isFurther = state === 'running' && (told.progress ?? 0) > (command.told.progress ?? 0);
  return isFurther && command.state === 'running'
    ? { ...command, told: { ...command.told, ...told } }
    : command;
}

function keepLate(command: CommandProgress, answer: GivenAnswer, ts: number): CommandProgress {
  const { late } = command;
  const isOwnEnd = command.state === 'done' || command.state === 'failed';
  if (isOwnEnd && (answer.state === command.state || !isEnd(answer.state))) return command;
  if (late && (isEnd(late.state) || !isEnd(answer.state))) return command;
  return { ...command, late: { ...answer, ts: Math.max(ts, command.endedTs ?? 0) } };
}
