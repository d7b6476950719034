import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { parseArgs } from 'node:util';
import type { z } from 'zod';
import { Purpose } from '../../contract/purpose.ts';
import { joinWarnings, warnOfActions, warnOfUnknown } from '../../contract/warnings.ts';
import { checkProfile } from '../../engine/check.ts';
import { listWarnings, warnOfPolygons } from '../../engine/warnings.ts';
import { findJsonError, jsonPointer } from '../../lib/json.ts';
import { describeIssue } from '../../lib/schema.ts';
import { messageOf } from '../../lib/thrown.ts';
import { readArguments, UsageError } from '../command-line.ts';

/** The options. Times in ms; null if they are not given. */
export type Options =
  | { kind: 'help' }
  | { kind: 'vectors'; folder: string; isJson: boolean }
  | { kind: 'answers'; folder: string }
  | {
      kind: 'history';
      /** An export of measurements, and files with purposes. */
      file: string;
      purposes: string[];
      /** Files with the purposes of the profile to compare with; none: nothing is compared. */
      against: string[];
      startTs: number | null;
      endTs: number | null;
    }
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
  history: { type: 'string' },
  purposes: { type: 'string', multiple: true },
  against: { type: 'string', multiple: true },
  start: { type: 'string' },
  end: { type: 'string' },
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
    if (!isAlone)
      throw new UsageError(`--${others[0]} cannot be combined with files or other options.`);
    return vectors === undefined
      ? { kind: 'answers', folder: answers ?? '' }
      : { kind: 'vectors', folder: vectors, isJson };
  }
  if (values.history !== undefined) return historyOptions(values, files);
  const [only] = (['purposes', 'against', 'start', 'end'] as const).filter((one) => values[one]);
  if (only) throw new UsageError(`--${only} belongs to --history.`);
  if (files.length === 0) {
    throw new UsageError('No purpose given: name a file, for example examples/freezer.json.');
  }
  const installedTs = timeOf('installed', values.installed);
  const untilTs = timeOf('until', values.until);
  return { kind: 'play', files, stream, isJson, explains: explain, installedTs, untilTs };
}

type Given = ReturnType<typeof parseArgs<{ options: typeof flags }>>['values'];

function historyOptions(values: Given, files: string[]): Options {
  const { history: file = '', purposes = [], against = [] } = values;
  const known = new Set(['history', 'purposes', 'against', 'start', 'end', 'json']);
  const other = Object.keys(values).find((name) => !known.has(name));
  if (other !== undefined) throw new UsageError(`--${other} cannot be combined with --history.`);
  if (files.length > 0 || purposes.length === 0)
    throw new UsageError('--history: name the purposes with --purposes FILE.');
  const startTs = timeOf('start', values.start);
  const endTs = timeOf('end', values.end);
  if (startTs !== null && endTs !== null && endTs < startTs)
    throw new UsageError('--end: expected a time after --start.');
  return { kind: 'history', file, purposes, against, startTs, endTs };
}

function timeOf(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const ts = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isSafeInteger(ts) && ts >= 0) return ts;
  throw new UsageError(
    `--${name}: expected a time, as milliseconds since 1970 or as 2026-11-23T08:00:00Z, found ${JSON.stringify(text)}.`,
  );
}

export const help = `Runs the purpose engine alone: shows what a purpose does with measurements, without a service.

Usage:
  npm run engine -- FILE… [options] < stream.ndjson
  npm run engine -- --history EXPORT --purposes FILE [--against FILE] [--start TIME] [--end TIME]
  npm run engine -- --vectors FOLDER [--json]
  npm run engine -- --answers FOLDER

The first form prints what fires and why, and which states the device enters. A FILE contains a purpose,
a list of purposes or a profile; several files form one profile. Each line of standard input is a
measurement as a device sends it, or a message of several:

  {"sId":"0x10","val":-9,"ts":1795420800000}
  [{"sId":"0x10","val":-9,"ts":1795420860000},{"sId":"0x10","val":-9,"ts":1795420920000}]

and, where it matters, its time of arrival ("arrivedTs"), {"tick":{"at":…}} for time that passes, {"enter":
{"puId":1,"stId":2}} for a reported state, {"install":[…]} for another profile, {"clock":{"at":…}} for an
arrival clock that was ahead and is corrected. All times come from the stream: the command reads no clock,
and a tick, which time alone completes, happens when it is due.

  --stream FILE     Read the measurements from a file.
  --installed TIME  When the profile becomes current (default: as the first line arrives).
  --until TIME      Let time pass after the last line, up to TIME.
  --explain         At the end, show what each cause of the live events waits for.
  --json            Print one line of JSON for each thing that happens, instead of text.

  --history EXPORT  Play purposes on what devices measured, as POST /v2/backtests does: an export of GET
                    /v2/measurements with columns=arrivedTs, as CSV or NDJSON. Prints the same lines.
  --purposes FILE   The purposes; several files form one profile.
  --against FILE    Also say how another profile differs.
  --start TIME      What arrived from then on counts (default: all)
  --end TIME        until then (default: as the last value arrived).

  A TIME is in milliseconds since 1970, or 2026-11-23T08:00:00Z.

  --vectors FOLDER  Check another engine's answers to the cases in test/vectors. The folder contains its
                    answers in files of the same names. Prints each difference and where it is.
  --answers FOLDER  Write this engine's answers to all cases, as an example.

  --help            This text.

test/vectors/README.md and docs/engine.md explain the lines, the form of answers and the rules.
npm prints the command that it runs to standard output; npm run --silent engine does not.

Exit status: 0 on success, 1 if an answer differs or the input is wrong, 2 if an option is wrong.
`;

/** Unusable content of a file or a stream. The message says where. */
export class InputError extends Error {}

/** Parses JSON. `where` names the file, and `fromLine` the line at which the text begins. Throws `InputError`. */
export function readJson(text: string, where: string, fromLine = 1): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const error = findJsonError(text);
    if (!error) throw new InputError(`${where}:${fromLine}: not JSON.`);
    const { line, column, found, expected } = error;
    const at = `${where}:${line + fromLine - 1}:${column}`;
    throw new InputError(`${at}: expected ${expected}, found ${found}.`);
  }
}

const mostProblems = 20;

/** Parses the value with the schema. Throws `InputError` with a line for each problem and its JSON Pointer. */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  where: string,
  path = '',
): z.infer<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => ({
    message: describeIssue(issue.message),
    path: jsonPointer(issue.path),
  }));
  // An unknown name is usually a misspelling of one that is missing.
  const lines = [...problems, ...warnOfUnknown(schema, value)];
  refuse(lines.map((one) => `${where} ${path}${one.path}: ${one.message}`));
}

/** Throws `InputError` with the first of these lines. */
function refuse(lines: readonly string[]): never {
  const more = lines.length - mostProblems;
  const told = lines.slice(0, mostProblems).map(oneSpace);
  throw new InputError([...told, ...(more > 0 ? [`And ${more} more.`] : [])].join('\n'));
}

/** A problem of a whole file has no pointer. */
const oneSpace = (line: string) => line.replace(' : ', ': ');

/** A line that is not empty, and its number, from 1. */
type Line = { line: number; text: string };

/** The lines of a text as they arrive. Throws `InputError` if it cannot be read. */
export async function* readLines(input: Readable, name: string): AsyncGenerator<Line> {
  input.setEncoding('utf8');
  let rest = '';
  let line = 0;
  try {
    for await (const chunk of input) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const text of lines) {
        line += 1;
        if (text.trim() !== '') yield { line, text };
      }
    }
  } catch (error) {
    throw new InputError(`${name} cannot be read: ${messageOf(error)}`);
  }
  if (rest.trim() !== '') yield { line: line + 1, text: rest };
}

/** A purpose, and where it was found: a file, and a JSON Pointer in it. */
type Found = { purpose: Purpose; where: string; path: string; sent: unknown };

/** The purposes of a profile, and a warning line for each probable mistake. */
type Read = { purposes: Purpose[]; warnings: string[] };

/** Reads files that each contain a purpose, a list of purposes, or a profile. Throws `InputError`. */
export function readPurposes(files: readonly string[]): Read {
  return check(files.flatMap((file) => findPurposes(readJson(readText(file), file), file)));
}

/** The same for a value that is parsed already. */
export function parsePurposes(value: unknown, where: string, path: string): Purpose[] {
  return check(findPurposes(value, where, path)).purposes;
}

/** Throws `InputError`. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new InputError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

function findPurposes(value: unknown, where: string, path = ''): Found[] {
  if (Array.isArray(value)) {
    return value.map((one: unknown, index) => found(one, where, `${path}/${index}`));
  }
  const isProfile = typeof value === 'object' && value !== null && 'purposes' in value;
  return isProfile
    ? findPurposes(value.purposes, where, `${path}/purposes`)
    : [found(value, where, path)];
}

const found = (sent: unknown, where: string, path: string): Found => ({
  purpose: parseWith(Purpose, sent, where, path),
  where,
  path,
  sent,
});

function check(all: Found[]): Read {
  if (all.length === 0) throw new InputError('The file contains no purpose.');
  const purposes = all.map(({ purpose }) => purpose);
  const pathOf = (index: number) => `${all[index]?.where} ${all[index]?.path}`;
  const problems = checkProfile(purposes, pathOf);
  if (problems.length > 0) refuse(problems.map(({ path, message }) => `${path}: ${message}`));
  const unknown = all.flatMap(({ sent }, index) =>
    warnOfUnknown(Purpose, sent).map((one) => ({ ...one, path: pathOf(index) + one.path })),
  );
  const warnings = joinWarnings(
    unknown,
    warnOfActions(purposes, pathOf),
    warnOfPolygons(purposes, pathOf),
    listWarnings(purposes, undefined, pathOf),
  );
  const lines = warnings.map(({ path, message, code }) => `${path}: ${message} (${code})`);
  return { purposes, warnings: lines.map(oneSpace) };
}
