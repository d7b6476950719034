import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { InputError, readJson } from './input-error.ts';
import { parseHappening } from './happening.ts';
import type { Options } from './options.ts';
import { Play, type Told } from './play.ts';
import { readLines } from './read-lines.ts';
import { readPurposes } from './read-purposes.ts';
import type { WriteLine } from './write.ts';
import { writeEnd } from './write-end.ts';
import { writeText } from './write-text.ts';

type Asked = Extract<Options, { kind: 'play' }>;
type Edges = { input: Readable; out: WriteLine; warn: WriteLine };

/** Lets a stream happen to a device that has the purposes of the files, and tells what that leads to. Throws `InputError`. */
export async function playStream(asked: Asked, { input, out, warn }: Edges): Promise<void> {
  const { files, stream, isJson, installedTs, untilTs } = asked;
  const { purposes, warnings } = readPurposes(files);
  for (const warning of warnings) await warn(`warning: ${warning}`);
  const play = new Play(purposes, installedTs);
  const tellAll = async (all: Iterable<Told>) => {
    for (const told of all) await out(isJson ? JSON.stringify(told) : textOf(told, play));
  };
  const name = stream ?? 'standard input';
  const lines = readLines(stream === null ? input : createReadStream(stream), name);
  for await (const { line, text } of lines) {
    const where = `${name}:${line}`;
    const happening = parseHappening(readLine(text, name, line), where);
    await tellAll(play.happen(happening, line, where));
  }
  if (untilTs !== null && play.nowTs !== null) {
    if (untilTs < play.nowTs) {
      throw new InputError(`--until ${untilTs} is before the last line, at ${play.nowTs}.`);
    }
    await tellAll(play.runUntil(untilTs));
  }
  await writeEnd(play, asked, out);
}

const endOfFile = 'the end of the file';

function readLine(text: string, name: string, line: number): unknown {
  try {
    return readJson(text, name, line);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const isCut = error.message.includes(endOfFile);
    const hint = isCut ? ' Each line is a whole measurement, or a whole message.' : '';
    throw new InputError(error.message.replace(endOfFile, 'the end of the line') + hint);
  }
}

function textOf(told: Told, { device }: Play): string {
  return device ? writeText(told, device.profile) : '';
}
