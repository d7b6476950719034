import type { Answer, Case } from './vectors/cases.ts';

/** Where an answer is another one than expected; `path` is a JSON Pointer into it. */
export type Difference = { path: string; expected: unknown; found: unknown };

/** What only an engine has to know that decides whom to tell, or when to look again: an answer may leave it out. */
const mayLack = new Set(['ring', 'first', 'ageMs', 'why', 'ended', 'nextDueTs']);

/** What is given to an engine: an answer need not repeat it. */
const isGiven = new Set([
  'measurement',
  'message',
  'tick',
  'clock',
  'enter',
  'install',
  'arrivedTs',
]);

/** Compares all that the case says, and no more: members that only the answer has are let be. */
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

/** Of what a measurement or a tick led to: no `ticks` and no `moves` mean that there are none. */
function compareLed(expected: Members, found: unknown, path: string): Difference[] {
  const { ticks = [], moves, ...rest } = expected;
  const { ticks: foundTicks = [], moves: foundMoves = null, ...foundRest } = membersOf(found);
  // Of a reported state only some cases say what it records.
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
