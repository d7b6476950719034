import { loadConfig } from '../config/config.ts';
import { describeStartError } from '../start-error.ts';
import { openTools, type Tools } from './account/open.ts';
import { asksForHelp, findWrongArgument } from './command-line.ts';

type OperatorCommands = {
  usage: string;
  /** By their names, each without arguments; what they say, a line each. */
  commands: { status: (tools: Tools) => Promise<string[]> } & Record<
    string,
    (tools: Tools) => Promise<string[]>
  >;
};

/**
 * A command of the operator's about the service as a whole: `status` without an argument. Gives the exit status: 1
 * where it failed, 2 where the arguments are wrong.
 */
export async function runOperatorCommand(
  args: string[],
  { usage, commands }: OperatorCommands,
): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const given = args.length === 0 ? ['status'] : args;
  const takes = Object.keys(commands).map((name) => [name, [0, 0] as [number, number]] as const);
  const wrong = findWrongArgument(given, Object.fromEntries(takes));
  const command = commands[given[0] ?? ''];
  if (wrong !== null || !command) {
    process.stderr.write(`${wrong}\n\n${usage}`);
    return 2;
  }
  try {
    const tools = await openTools(await loadConfig(process.env));
    try {
      for (const line of await command(tools)) console.log(line);
      return 0;
    } finally {
      await tools.close();
    }
  } catch (error) {
    const lines = describeStartError(error);
    if (lines) for (const line of lines) console.error(line);
    else console.error(error);
    return 1;
  }
}
