import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { Profile } from '../../engine/compile.ts';
import { describeCauses, words } from '../../notifications/text.ts';
import { InputError, type Options, readJson, readLines, readPurposes } from './options.ts';
import {
  type Device,
  eventText,
  type Fired,
  type Led,
  measuredText,
  type Moved,
  parseHappening,
  placeText,
  Play,
  timeText,
  type Told,
} from './play.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

type Asked = Extract<Options, { kind: 'play' }>;
type Ingress = { input: Readable; out: WriteLine; warn: WriteLine };

/** Runs a stream through a device with the files' purposes, and writes what that leads to. Throws `InputError`. */
export async function playStream(asked: Asked, { input, out, warn }: Ingress): Promise<void> {
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
    const hint = isCut ? ' Each line must be a whole measurement or a whole message.' : '';
    throw new InputError(error.message.replace(endOfFile, 'the end of the line') + hint);
  }
}

function textOf(told: Told, { device }: Play): string {
  return device ? writeText(told, device.profile) : '';
}

/**
 * Writes the device's state after the stream, and when a tick is due; with `explains`, also what each cause waits for.
 */
async function writeEnd(
  { device, nowTs }: Play,
  { isJson, explains }: { isJson: boolean; explains: boolean },
  out: WriteLine,
): Promise<void> {
  if (!device || nowTs === null) {
    if (!isJson) await out('The stream is empty.');
    return;
  }
  const nextDueTs = device.nextDueTs();
  if (isJson) {
    const events = explains ? { events: device.explain(nowTs).events } : {};
    await out(JSON.stringify({ kind: 'end', nowTs, ends: device.place, nextDueTs, ...events }));
    return;
  }
  await out(`${timeText(nowTs)}  end: the device is in ${placeText(device.place, device.profile)}`);
  if (nextDueTs !== null) {
    await out(`    a tick is due at ${timeText(nextDueTs)} (use --until to advance the time)`);
  }
  if (explains) for (const line of explanation(device, nowTs)) await out(`    ${line}`);
}

function explanation(device: Device, nowTs: WallMs): string[] {
  return device
    .explain(nowTs)
    .events.flatMap(({ stId, evId, name, text, causes }) => [
      `event ${evId} of state ${stId}${name === '' ? '' : ` ${JSON.stringify(name)}`}: ${text}`,
      ...causes.map((cause) => `  ${cause.sId}: ${cause.text}`),
    ]);
}

/** The text for people: one line or more. Times are in UTC. */
function writeText(told: Told, profile: Profile): string {
  const at = timeText(told.arrivedTs);
  const atLine = 'line' in told ? `line ${told.line}` : 'tick';
  const lines = linesOf(told, profile);
  return lines.map((line, index) => (index === 0 ? `${at}  ${atLine}: ${line}` : line)).join('\n');
}

function linesOf(told: Told, profile: Profile): string[] {
  switch (told.kind) {
    case 'tick':
    case 'measured':
      return ledLines(told, profile);
    case 'not-evaluated':
      return [`${measuredText(told.measurement)} is not evaluated: it is late or a duplicate`];
    case 'remark':
      return [`message to the device, ${told.reason}: ${told.message}`];
    case 'installed':
      return [`another profile: the device enters ${placeText(told.place, profile)}`];
    case 'entered':
      return [told.moves ? moveText(told.moves, profile) : 'the device is already there'];
  }
}

const further = '\n    ';

function ledLines({ fires, ended, shows, moves }: Led, profile: Profile): string[] {
  const lines = [
    ...ended.map((name) => `${eventText(name, profile)}: its episode is over`),
    ...fires.map((fired) => firedText(fired, profile)),
    ...shows.map((text) => `shows ${JSON.stringify(text)}`),
    ...(moves ? [moveText(moves, profile)] : []),
  ];
  return [lines.join(further)];
}

function firedText(fired: Fired, profile: Profile): string {
  const { puId, stId, evId, ts, senses, why, record } = fired;
  const engine = { pId: '', puId, stId, evId, ts };
  const because = describeCauses(
    { type: 'sense', ts, cause: { engine, senses }, why },
    {},
    words.en,
  );
  const effects = [record ? 'recorded' : '', toldText(fired)].filter((text) => text !== '');
  const what = `${eventText(fired, profile)} fires${effects.length > 0 ? `: ${effects.join(', ')}` : ''}`;
  return [what, ...because.map((cause) => `  because ${cause}`)].join(further);
}

function toldText({ tells, first, ring }: Fired): string {
  if (tells === 'nobody') return '';
  if (tells === 'notice')
    return ring ? 'people are notified' : 'nobody is notified: the move has no effect';
  if (!first) return 'same episode, nobody is notified again';
  return tells === 'alarm'
    ? 'opens an alarm, people are notified'
    : 'opens an alarm, nobody is notified';
}

function moveText({ event, ...to }: Moved, profile: Profile): string {
  if (!event) return `enters ${placeText(to, profile)} again`;
  return `moves to ${placeText(to, profile)} (${event.event} from ${event.oldValue})`;
}

/** Writes a line. Resolves when the output accepts another. */
export type WriteLine = (line: string) => Promise<void>;

export function lineWriter(output: Writable): WriteLine {
  return async (line) => {
    if (!output.write(`${line}\n`)) await once(output, 'drain');
  };
}
