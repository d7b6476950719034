import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Evaluated } from '../../engine/compile.ts';
import { messageOf } from '../../lib/thrown.ts';
import { InputError, parsePurposes, parseWith, readJson, readText } from './options.ts';
import {
  arrivalOf,
  Device,
  type Happening,
  isSomething,
  type Led,
  ledBy,
  movedOf,
  parseHappening,
} from './play.ts';
import type { WriteLine } from './write.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** A difference in an answer; `case` counts from 0. */
type Wrong = { file: string; case: number; rule: string } & Difference;

/**
 * Compares another engine's answers with the cases of test/vectors. Returns whether all agree. Files without answers
 * are listed, but are no difference. Throws `InputError`.
 */
export async function checkVectors(
  { folder, isJson }: { folder: string; isJson: boolean },
  out: WriteLine,
): Promise<boolean> {
  const files = readCases();
  const names = files.map(({ name }) => name);
  const answers = findAnswers(folder, names);
  const unanswered: string[] = [];
  let [cases, agree] = [0, 0];
  for (const file of files) {
    const path = answers.get(file.name);
    if (path === undefined) {
      unanswered.push(`${file.name}.json`);
      continue;
    }
    const wrong = compareFile(file, path);
    for (const one of wrong) await out(isJson ? asJson(one) : asText(one));
    const count = file.cases.length;
    const agreeing = count - new Set(wrong.map(({ case: index }) => index)).size;
    if (!isJson) await out(`${path}: ${agreeing} of ${count} cases agree`);
    cases += count;
    agree += agreeing;
  }
  if (isJson) await out(JSON.stringify({ kind: 'summary', cases, agree, unanswered }));
  else await out(summary(cases, agree, unanswered));
  return agree === cases;
}

function compareFile({ name, cases }: CaseFile, path: string): Wrong[] {
  const answers = readAnswers(path);
  const wrong = cases.flatMap((expected, index): Wrong[] => {
    const { rule } = expected;
    const answer = answers.get(rule);
    answers.delete(rule);
    const differences = answer
      ? compareAnswer(expected, answer)
      : [{ path: '', expected: 'an answer', found: undefined }];
    return differences.map((one) => ({ file: `${name}.json`, case: index, rule, ...one }));
  });
  const [other] = answers.keys();
  if (other === undefined) return wrong;
  throw new InputError(
    `${path} answers a case that is not in ${name}.json: ${JSON.stringify(other)}`,
  );
}

const asJson = (wrong: Wrong) => JSON.stringify({ kind: 'difference', ...wrong });

function asText({ file, case: index, rule, path, expected, found }: Wrong): string {
  const place = `${file} /${index}${path}`;
  return `${place}: expected ${shown(expected)}, found ${shown(found)}\n    ${rule}`;
}

/** Nobody reads a long value to its end. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function summary(cases: number, agree: number, unanswered: string[]): string {
  const all = `${agree} of ${cases} cases agree`;
  return unanswered.length === 0 ? `${all}.` : `${all}; no answers to ${unanswered.join(', ')}.`;
}

const Place = z.object({ puId: z.int(), stId: z.int() });
const Step = z.record(z.string(), z.json());

/** An engine's answer to a case: what each step led to, with the names that the case has. */
const Answer = z.object({ rule: z.string(), steps: z.array(Step), ends: Place });
type Answer = z.infer<typeof Answer>;

/** A case of test/vectors, as its README describes it: the input of an engine, and its expected answer. */
const Case = Answer.extend({
  purposes: z.array(z.json()),
  installedTs: z.int().default(0),
  listening: z.array(z.object({ fromTs: z.int(), toTs: z.int().nullable() })).default([]),
  starts: Place.optional(),
});
type Case = z.infer<typeof Case>;

/** `name`: without its extension. */
type CaseFile = { name: string; cases: Case[] };

const folder = fileURLToPath(new URL('../../../test/vectors', import.meta.url));

/** Reads test/vectors. Throws `InputError` if the installation does not have it. */
function readCases(): CaseFile[] {
  return listFiles(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const path = join(folder, file);
      const cases = parseWith(Case.array(), readJson(readText(path), path), path);
      return { name: file.slice(0, -'.json'.length), cases };
    });
}

/** In alphabetical order. Throws `InputError`. */
function listFiles(of: string): string[] {
  try {
    return readdirSync(of).toSorted();
  } catch (error) {
    throw new InputError(`${of} cannot be read: ${messageOf(error)}`);
  }
}

const endings = ['.json', '.ndjson'];

/** The files of a folder that have answers, by the name of the file of cases. Throws `InputError`. */
function findAnswers(folder: string, names: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of listFiles(folder)) {
    const ending = endings.find((one) => file.endsWith(one));
    if (!ending) continue;
    const name = file.slice(0, -ending.length);
    const path = join(folder, file);
    // Otherwise a file with a misspelled name would be ignored.
    if (!names.includes(name))
      throw new InputError(`${path}: no such cases. Known cases: ${names.join(', ')}.`);
    const other = found.get(name);
    if (other) throw new InputError(`${other} and ${path} answer the same cases.`);
    found.set(name, path);
  }
  if (found.size > 0) return found;
  const example = `${names[0]}.json or ${names[0]}.ndjson`;
  throw new InputError(`${folder} has no answers: expected files like ${example}.`);
}

/** The answers in a file by the rules of their cases: an array, or one per line. Throws `InputError`. */
function readAnswers(file: string): Map<string, Answer> {
  const text = readText(file);
  const all = file.endsWith('.ndjson')
    ? text.split('\n').flatMap((line, index) => {
        const where = `${file}:${index + 1}`;
        return line.trim() === ''
          ? []
          : [parseWith(Answer, readJson(line, file, index + 1), where)];
      })
    : parseWith(Answer.array(), readJson(text, file), file);
  const byRule = new Map<string, Answer>();
  for (const answer of all) {
    if (byRule.has(answer.rule)) {
      throw new InputError(`${file} answers ${JSON.stringify(answer.rule)} twice.`);
    }
    byRule.set(answer.rule, answer);
  }
  return byRule;
}

/** A place where an answer differs from the expected one; `path` is a JSON Pointer into it. */
type Difference = { path: string; expected: unknown; found: unknown };

/** Members for an engine that decides whom to notify, or when to evaluate next. An answer may omit them. */
const mayLack = new Set(['ring', 'first', 'ageMs', 'began', 'why', 'ended', 'nextDueTs']);

/** Input of an engine, which an answer need not repeat. */
const isGiven = new Set([
  'measurement',
  'message',
  'tick',
  'clock',
  'enter',
  'install',
  'arrivedTs',
]);

/** Compares everything that the case specifies, and ignores members that only the answer has. */
export function compareAnswer(expected: Case, answer: Answer): Difference[] {
  const { steps, ends } = expected;
  if (steps.length !== answer.steps.length) {
    const [path, found] = ['/steps', `${answer.steps.length} steps`];
    return [{ path, expected: `${steps.length} steps`, found }];
  }
  const ofSteps = steps.flatMap((step, index) => {
    const asked = Object.fromEntries(Object.entries(step).filter(([name]) => !isGiven.has(name)));
    return compareLed(asked, answer.steps[index], `/steps/${index}`);
  });
  return [...ofSteps, ...compare(ends, answer.ends, '/ends')];
}

/** Compares what a measurement or a tick led to. Absent `ticks` and `moves` mean that there are none. */
function compareLed(expected: Members, found: unknown, path: string): Difference[] {
  const { ticks = [], moves, ...rest } = expected;
  const { ticks: foundTicks = [], moves: foundMoves = null, ...foundRest } = membersOf(found);
  // For a reported state only some cases specify what it records.
  const isReport = moves === undefined && expected['fires'] === undefined;
  return [
    ...compareAll(ticks, foundTicks, `${path}/ticks`),
    ...compare(rest, foundRest, path),
    ...(isReport ? [] : compare(moves ?? null, foundMoves, `${path}/moves`)),
  ];
}

function compareAll(expected: unknown, found: unknown, path: string): Difference[] {
  if (!Array.isArray(expected) || !Array.isArray(found) || expected.length !== found.length) {
    return [{ path, expected, found }];
  }
  return expected.flatMap((one: unknown, index) =>
    compareLed(membersOf(one), found[index], `${path}/${index}`),
  );
}

type Members = Record<string, unknown>;

function compare(expected: unknown, found: unknown, path: string): Difference[] {
  const isSame = expected === found;
  if (typeof expected !== 'object' || expected === null) {
    return isSame ? [] : [{ path, expected, found }];
  }
  if (path.endsWith('/evaluates')) return compareAll(expected, found, path);
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || expected.length !== found.length)
      return [{ path, expected, found }];
    return expected.flatMap((one, index) => compare(one, found[index], `${path}/${index}`));
  }
  if (typeof found !== 'object' || found === null) return [{ path, expected, found }];
  return Object.entries(expected).flatMap(([name, value]) => {
    const member = (found as Members)[name];
    return member === undefined && mayLack.has(name)
      ? []
      : compare(value, member, `${path}/${name}`);
  });
}

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : {};

/** This engine's answer to a case, with all members that an answer may have. */
function answerCase({ rule, purposes, installedTs, listening, starts, steps }: Case) {
  const where = JSON.stringify(rule);
  const parsed = parsePurposes(purposes, where, '/purposes');
  const device = new Device(parsed, installedTs, { gaps: listening });
  if (starts) device.standIn(starts, installedTs);
  let nowTs = installedTs;
  const answered = steps.map((step) => {
    const happening = parseHappening(step, where);
    nowTs = arrivalOf(happening, nowTs, where);
    if (happening.kind === 'clock') device.setClockRight(nowTs);
    const ticks = ledByAll(device.ticksUntil(nowTs));
    const led = answerStep(device, happening, nowTs, 'message' in step);
    const forced = 'ticks' in led ? led.ticks : [];
    return { ...led, ticks: [...ticks, ...forced], nextDueTs: device.nextDueTs() };
  });
  return { rule, steps: answered, ends: device.place };
}

function answerStep(device: Device, happening: Happening, arrivedTs: WallMs, isMessage: boolean) {
  switch (happening.kind) {
    case 'tick':
    case 'clock':
      return {};
    case 'install':
      device.install(happening.purposes, arrivedTs);
      return {};
    case 'enter': {
      const { to, said } = happening;
      const event = device.enter(to, said, arrivedTs);
      return { moves: event && movedOf(to, event) };
    }
    case 'message': {
      const { measured } = device.measure(happening.sent, arrivedTs);
      const evaluates = measured.flatMap(({ measurement, forced, outcome }) =>
        outcome ? [{ measurement, ticks: ledByAll(forced), ...ledBy(outcome) }] : [],
      );
      if (isMessage) return { evaluates };
      const [only] = evaluates;
      return only ?? { fires: [], ended: [], shows: [] };
    }
  }
}

const ledByAll = (ticks: readonly Evaluated[]): Led[] => ticks.map(ledBy).filter(isSomething);

/** Writes this engine's answer to every case: an NDJSON file for each file of test/vectors. Throws `InputError`. */
export async function writeAnswers(folder: string, out: WriteLine): Promise<void> {
  makeFolder(folder);
  for (const { name, cases } of readCases()) {
    const lines = cases.map((one) => `${JSON.stringify(answerCase(one))}\n`);
    const path = join(folder, `${name}.ndjson`);
    writeFileSync(path, lines.join(''));
    await out(`${path}: ${cases.length} answers`);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new InputError(`${folder} cannot be created: ${messageOf(error)}`);
  }
}
