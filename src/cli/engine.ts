import process from 'node:process';
import { messageOf } from '../lib/thrown.ts';
import { playHistory } from './engine/history.ts';
import { help, InputError, parseOptions } from './engine/options.ts';
import { UsageError } from './command-line.ts';
import { lineWriter, playStream } from './engine/write.ts';
import { checkVectors, writeAnswers } from './engine/vectors.ts';

// A reader of only the first lines, such as head, closes the pipe.
process.stdout.on('error', () => process.exit(0));
process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  const options = parseOptions(args);
  const [out, warn] = [lineWriter(process.stdout), lineWriter(process.stderr)];
  switch (options.kind) {
    case 'help':
      process.stdout.write(help);
      return 0;
    case 'vectors':
      return (await checkVectors(options, out)) ? 0 : 1;
    case 'answers':
      await writeAnswers(options.folder, out);
      return 0;
    case 'history':
      await playHistory(options, { out, warn });
      return 0;
    case 'play': {
      const { stdin: input } = process;
      if (options.stream === null && input.isTTY)
        await warn('Enter measurements, one per line; end with Ctrl-D:');
      await playStream(options, { input, out, warn });
      return 0;
    }
  }
}

function explain(error: unknown): number {
  const isExpected = error instanceof UsageError || error instanceof InputError;
  process.stderr.write(`${isExpected ? error.message : stackOf(error)}\n`);
  if (!(error instanceof UsageError)) return 1;
  process.stderr.write('Use --help to see the options.\n');
  return 2;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
}
