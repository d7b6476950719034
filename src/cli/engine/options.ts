import { readArguments } from '../read-options.ts';
import { UsageError } from '../usage-error.ts';

/** What is asked for. Times in ms; null where they are not given. */
export type Options =
  | { kind: 'help' }
  | { kind: 'vectors'; folder: string; isJson: boolean }
  | { kind: 'answers'; folder: string }
  | {
      kind: 'play';
      files: string[];
      /** A file with the stream; null: standard input. */
      stream: string | null;
      isJson: boolean;
      explains: boolean;
      installedTs: number | null;
      untilTs: number | null;
    };

const flags = {
  vectors: { type: 'string' },
  answers: { type: 'string' },
  stream: { type: 'string' },
  installed: { type: 'string' },
  until: { type: 'string' },
  json: { type: 'boolean' },
  explain: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Reads the command line. Throws `UsageError`. */
export function parseOptions(args: string[]): Options {
  const { values, positionals: files } = readArguments({
    args,
    options: flags,
    allowPositionals: true,
  });
  const { vectors, answers, stream = null, json: isJson = false, explain = false } = values;
  if (values.help) return { kind: 'help' };
  const others = Object.keys(values).filter((name) => name !== 'json' || answers !== undefined);
  if (vectors !== undefined || answers !== undefined) {
    const isAlone = others.length === 1 && files.length === 0;
    if (!isAlone) throw new UsageError(`--${others[0]} goes with no file and no other option.`);
    return vectors === undefined
      ? { kind: 'answers', folder: answers ?? '' }
      : { kind: 'vectors', folder: vectors, isJson };
  }
  if (files.length === 0) {
    throw new UsageError('Which purpose? Name a file, examples/freezer.json for example.');
  }
  const installedTs = timeOf('installed', values.installed);
  const untilTs = timeOf('until', values.until);
  return { kind: 'play', files, stream, isJson, explains: explain, installedTs, untilTs };
}

function timeOf(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const ts = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isSafeInteger(ts) && ts >= 0) return ts;
  throw new UsageError(
    `--${name}: expected a time, as milliseconds since 1970 or as 2026-11-23T08:00:00Z, found ${JSON.stringify(text)}.`,
  );
}
