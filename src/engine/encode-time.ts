import type { EventTime, CauseTime, TimedOutcome } from './time-evidence.ts';

/** What `encodeTime` writes of an event: the newest time, and of each cause what it has; 0 where it has nothing. */
export type StoredTime = [newestT: number | null, ...causes: (0 | StoredCauseTime)[]];

type StoredCauseTime = [
  lastT: number | null,
  agreedT: number | null,
  compared: number | null,
  run: 0 | [sinceT: number, newestT: number, ageMs: number, isComplete: 0 | 1, ...due: number[]],
  silence: 0 | [sinceTs: number, completeTs: number | null],
  bins: 0 | [sinceT: number, ...list: [number, number, number, number, number][]],
  outcomeTs: 0 | number[],
  lately: 0 | [t: number, agrees: 0 | 1][],
];

/** Null where there is nothing to write. */
export function encodeTime({ newestT, causes }: EventTime): StoredTime | null {
  if (newestT === null && causes.every((time) => time === null)) return null;
  return [newestT, ...causes.map((time) => (time ? encodeCause(time) : 0))];
}

/** For an event of so many causes; `stored` is null where nothing was written. */
export function decodeTime(stored: StoredTime | null, count: number): EventTime {
  const [newestT, ...causes] = stored ?? [null];
  const decoded = Array.from({ length: count }, (_, index) => {
    const cause = causes[index] ?? 0;
    return cause === 0 ? null : decodeCause(cause);
  });
  return { newestT, causes: decoded };
}

function encodeCause(time: CauseTime): StoredCauseTime {
  const { lastT, agreedT, compared = null, run, silence, bins, outcomeTs, lately } = time;
  return [
    lastT,
    agreedT,
    compared,
    run
      ? [
          run.sinceT,
          run.newestT,
          run.newestAgeMs,
          run.isComplete ? 1 : 0,
          ...(run.due ? [run.due.t, run.due.ts] : []),
        ]
      : 0,
    silence ? [silence.sinceTs, silence.completeTs] : 0,
    bins
      ? [
          bins.sinceT,
          ...bins.list.map(({ at, sum, count, first, last }) => {
            return [at, sum, count, first, last] as [number, number, number, number, number];
          }),
        ]
      : 0,
    outcomeTs ? differences(outcomeTs) : 0,
    lately ? lately.map(({ t, agrees }) => [t, agrees ? 1 : 0]) : 0,
  ];
}

function decodeCause(stored: StoredCauseTime): CauseTime {
  const [lastT, agreedT, compared, run, silence, bins, outcomeTs, lately] = stored;
  return {
    lastT,
    agreedT,
    compared: compared ?? undefined,
    run: run === 0 ? null : decodeRun(run),
    silence: silence === 0 ? null : { sinceTs: silence[0], completeTs: silence[1] },
    bins: bins === 0 ? null : decodeBins(bins),
    outcomeTs: outcomeTs === 0 ? null : sums(outcomeTs),
    lately:
      lately === 0
        ? null
        : lately.map(([t, agrees]): TimedOutcome => ({ t, agrees: agrees === 1 })),
  };
}

function decodeRun([sinceT, newestT, newestAgeMs, complete, t, ts]: Exclude<
  StoredCauseTime[3],
  0
>): CauseTime['run'] {
  const due = t === undefined || ts === undefined ? null : { t, ts };
  return { sinceT, newestT, newestAgeMs, due, isComplete: complete === 1 };
}

function decodeBins([sinceT, ...list]: Exclude<StoredCauseTime[5], 0>): CauseTime['bins'] {
  const bins = list.map(([at, sum, count, first, last]) => ({ at, sum, count, first, last }));
  return { sinceT, list: bins };
}

/** The first number, and by how much each is more than the one before it. */
function differences(numbers: readonly number[]): number[] {
  return numbers.map((number, index) => number - (numbers[index - 1] ?? 0));
}

function sums(given: readonly number[]): number[] {
  let sum = 0;
  return given.map((difference) => (sum += difference));
}
