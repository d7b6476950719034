import { parseArgs, type ParseArgsConfig } from 'node:util';
import { messageOf } from '../lib/thrown.ts';
import { UsageError } from './usage-error.ts';

type Flags = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Flags> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T }>
>['values'];

/** As `parseArgs` of Node. Throws `UsageError`, which says in one sentence what is wrong. */
export function readArguments<T extends ParseArgsConfig>(
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    // Node goes on with advice that fits no command here.
    const [sentence = ''] = messageOf(error).split(/\. To specify|\. This command|\n/);
    throw new UsageError(`${sentence.replace(/\.$/, '')}.`);
  }
}

/**
 * What `read` makes of the options of a program that takes nothing else. With `--help` it ends the process
 * after `usage`, and where an option is wrong (a `UsageError`) with 2, after what is wrong and `usage`.
 */
export function readOptionsOrExit<T extends Flags, R>(
  usage: string,
  options: T,
  read: (values: Values<T>) => R,
): R {
  const text = `${usage.trimEnd()}\n`;
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(text);
    process.exit(0);
  }
  try {
    return read(readArguments({ args, options }).values);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${text}`);
    process.exit(2);
  }
}
