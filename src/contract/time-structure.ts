/** Something wrong with how the parts of a purpose fit together. */
export type StructuralProblem = { path: (string | number)[]; message: string };

/** A cause as far as it could be read: any member may be missing or of another type. */
export type ReadableCause = { threshold?: unknown; thresholds?: unknown; measurement?: unknown };

type Members = Record<string, unknown>;
type Path = (string | number)[];

/** Longest window of a cause with `maxAgeMs`: it keeps the time of each of its outcomes. */
const maxAgedCount = 64;

/** Members of a cause that contradict what it says of time, each with what to write instead. */
export function timeProblems(cause: ReadableCause, path: Path): StructuralProblem[] {
  const threshold = membersOf(cause.threshold);
  const thresholds = membersOf(cause.thresholds);
  return [
    ...silenceProblems(threshold, thresholds, path),
    ...overProblems(threshold, thresholds, path),
    ...agedProblems(threshold, membersOf(cause.measurement), path),
  ];
}

/** A silence has no value that could be compared. */
function silenceProblems(threshold: Members, thresholds: Members, path: Path): StructuralProblem[] {
  if (threshold['noneForMs'] === undefined) return [];
  const compared = Object.keys(thresholds).filter((member) => isGiven(thresholds[member]));
  const beside = ['forMs', 'over', 'maxAgeMs', 'decimalAcc', 'negate', 'relative'].filter(
    (member) => isGiven(threshold[member]),
  );
  const { count = 1 } = threshold;
  if (count !== 1) beside.push('count');
  return [
    ...compared.map((member) => ({ path: [...path, 'thresholds', member], member })),
    ...beside.map((member) => ({ path: [...path, 'threshold', member], member })),
  ].map(({ path: at, member }) => ({ path: at, message: besideSilence(member) }));
}

function besideSilence(member: string): string {
  const hint =
    member === 'forMs' || member === 'maxAgeMs'
      ? 'noneForMs alone says how long'
      : 'what is compared is another cause, or another event';
  return `noneForMs waits until nothing is measured, so it has no ${member} beside it: ${hint}`;
}

function overProblems(
  { over, relative }: Members,
  { isInsideGeo }: Members,
  path: Path,
): StructuralProblem[] {
  if (over === undefined) return [];
  const problems: StructuralProblem[] = [];
  if (isGiven(relative)) {
    const message = 'over has no relative beside it: its stat "delta" compares the change';
    problems.push({ path: [...path, 'threshold', 'relative'], message });
  }
  if (isInsideGeo !== undefined) {
    const message = 'over is a statistic of numbers: a polygon needs a cause without it';
    problems.push({ path: [...path, 'thresholds', 'isInsideGeo'], message });
  }
  return problems;
}

function agedProblems(
  { maxAgeMs, count }: Members,
  measurement: Members,
  path: Path,
): StructuralProblem[] {
  if (maxAgeMs === undefined) return [];
  const problemOf = (value: unknown, at: Path): StructuralProblem[] => {
    if (typeof value !== 'number' || value <= maxAgedCount) return [];
    const message = `beside maxAgeMs it is at most ${maxAgedCount}`;
    return [{ path: [...path, ...at], message }];
  };
  return [
    ...problemOf(count, ['threshold', 'count']),
    ...problemOf(measurement['count'], ['measurement', 'count']),
  ];
}

/** `false` is as if it were absent. */
const isGiven = (value: unknown) => value !== undefined && value !== false;

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}
