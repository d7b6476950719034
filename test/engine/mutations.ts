/** A mistake that an engine could make: texts in a file of the service's engine, and their replacements. */
export type Mutation = {
  mistake: string;
  file: string;
  changes: readonly (readonly [from: string, to: string])[];
};

const setBack = 'src/ingest/rules/watermark.ts';
const takeTime = 'src/ingest/rules/measurements.ts';
const kept = 'src/engine/timed.ts';
const runtime = 'src/engine/runtime.ts';

export const mutations: Mutation[] = [
  {
    mistake: 'behind a move an event is cleared first and learns then',
    file: 'src/engine/fire.ts',
    changes: [
      [
        '  let cost = 0;\n',
        '  let cost = 0;\n  if (place.puId === puId) live.enter(place, entersPurpose, outcome.arrivedTs);\n',
      ],
      [
        '  live.enter(place, entersPurpose, outcome.arrivedTs);\n  return cost;',
        '  if (place.puId !== puId) live.enter(place, entersPurpose, outcome.arrivedTs);\n  return cost;',
      ],
      [
        'if (isEmptied && !event.isTimed && !draft.get(event.index)?.episode) return 0;',
        'void isEmptied;',
      ],
    ],
  },
  {
    mistake: 'a clock is set back after more than 15 minutes only',
    file: setBack,
    changes: [
      [
        'arrivedTs - firstArrivedTs >= setBackAfterMs',
        'arrivedTs - firstArrivedTs > setBackAfterMs',
      ],
    ],
  },
  {
    mistake: 'a clock is set back a millisecond before 15 minutes',
    file: setBack,
    changes: [['= 15 * 60_000', '= 15 * 60_000 - 1']],
  },
  {
    mistake: 'a clock is set back by two late measurements',
    file: setBack,
    changes: [['const fewestOfRun = 3', 'const fewestOfRun = 2']],
  },
  {
    mistake: 'a clock is set back by four late measurements only',
    file: setBack,
    changes: [['const fewestOfRun = 3', 'const fewestOfRun = 4']],
  },
  {
    mistake: 'a clock that goes exactly half as fast as time is not set back',
    file: setBack,
    changes: [['wentMs >= tookMs / 2', 'wentMs > tookMs / 2']],
  },
  {
    mistake: 'a clock that goes exactly twice as fast as time is not set back',
    file: setBack,
    changes: [['wentMs <= tookMs * 2', 'wentMs < tookMs * 2']],
  },
  {
    mistake: 'a clock that goes more than twice as fast is set back',
    file: setBack,
    changes: [['wentMs <= tookMs * 2', 'wentMs <= tookMs * 2 + 1']],
  },
  {
    mistake: 'a clock that goes less than half as fast is set back',
    file: setBack,
    changes: [['wentMs >= tookMs / 2', 'wentMs >= tookMs / 2 - 1']],
  },
  {
    mistake: 'a late one with the ts of the late one before goes on with the count',
    file: setBack,
    changes: [['ts <= run.lastTs', 'ts < run.lastTs']],
  },
  {
    mistake: 'late ones that did not go as time does are counted on',
    file: setBack,
    changes: [
      [
        '!keepsPace(grown, arrivedTs) ? begun : grown',
        '!keepsPace(grown, arrivedTs) ? grown : grown',
      ],
    ],
  },
  {
    mistake: 'a measurement that is stored already ends the count of late ones',
    file: takeTime,
    changes: [
      [
        'return isAgain ? null : this.#weigh(',
        'if (isAgain) this.#forget(sId);\n    return isAgain ? null : this.#weigh(',
      ],
    ],
  },
  {
    mistake: 'a measurement without ts leaves the count of late ones as it is',
    file: takeTime,
    changes: [
      ['newest, null);\n      return ts;', 'newest, clock?.late ?? null);\n      return ts;'],
    ],
  },
  {
    mistake: 'a measurement that is ahead ends no silence',
    file: 'src/engine/timed.ts',
    changes: [
      [
        'const verdict = judgeInTime(',
        'if (cause.time?.noneForMs && (given.once.agreed?.ts ?? 0) > given.moment.arrivedTs + 10_000) continue;\n    const verdict = judgeInTime(',
      ],
    ],
  },
  {
    mistake: 'a value that was ahead is one of the sixteen',
    file: takeTime,
    changes: [
      [
        '      this.#keep(sId, number, own, null);\n      return arrivedTs;',
        '      this.#seen = this.#seen.with(number, { ts: last?.ts ?? 0, vals: [...(last?.vals ?? []), measurement.val] });\n      this.#keep(sId, number, own, null);\n      return arrivedTs;',
      ],
    ],
  },
  {
    mistake: 'the last value of a full millisecond is forgotten',
    file: 'src/engine/last-seen.ts',
    changes: [['const isBeyond = newest.ts === ts', 'const isBeyond = false && newest.ts === ts']],
  },
  {
    mistake: 'a re-entry forgets T',
    file: kept,
    changes: [
      [
        '  const { newestT } = time;\n  return withTime(event, left',
        '  const newestT = null;\n  return withTime(event, left',
      ],
    ],
  },
  {
    mistake: 'a re-entry ends a silence that is complete',
    file: kept,
    changes: [
      [
        '{ ...(time.run ? time : withoutOutcomes(time)), bins: null }',
        '{ ...(time.run ? time : withoutOutcomes(time)), bins: null, silence: time.silence && { ...time.silence, completeTs: null } }',
      ],
    ],
  },
  {
    mistake: 'a re-entry ends a run',
    file: kept,
    changes: [
      [
        '{ ...(time.run ? time : withoutOutcomes(time)), bins: null }',
        '{ ...withoutOutcomes(time), run: null, bins: null }',
      ],
    ],
  },
  {
    mistake: 'a re-entry leaves the window of over',
    file: kept,
    changes: [['withoutOutcomes(time)), bins: null }', 'withoutOutcomes(time)) }']],
  },
  {
    mistake: 'a cause of any group that disagrees ends the episode',
    file: 'src/engine/evidence.ts',
    changes: [['own.episode &= ~groups;', 'own.episode = 0;']],
  },
  {
    mistake: 'of groups that hold the last one names the firing',
    file: 'src/engine/evidence.ts',
    changes: [['groups?.find(', 'groups?.findLast(']],
  },
  {
    mistake: 'a firing forgets the outcomes of its episode',
    file: 'src/engine/fire.ts',
    changes: [
      ['  const { lately } = evidence;\n  let isEmpty', '  const lately = null;\n  let isEmpty'],
    ],
  },
  {
    mistake: 'a firing forgets the outcomes of its episode, with maxAgeMs',
    file: kept,
    changes: [
      [
        'agreedT: null, compared: undefined, outcomeTs: null }',
        'agreedT: null, compared: undefined, outcomeTs: null, lately: null }',
      ],
    ],
  },
  {
    mistake: 'outcomes of an episode that are too old count against it',
    file: 'src/engine/timed.ts',
    changes: [['time.lately?.filter((outcome) => outcome.t >= oldestT)', 'time.lately']],
  },
  {
    mistake: 'measurement.count makes a silence lenient',
    file: 'src/engine/compile.ts',
    changes: [['time?.forMs || time?.noneForMs', 'time?.forMs']],
  },
  {
    mistake: 'silentMs counts to the ts of the firing',
    file: 'src/engine/fire.ts',
    changes: [['Math.max(nowTs, completeTs ?? nowTs) - sinceTs', 'nowTs - sinceTs']],
  },
  {
    mistake: 'a silence is told of as of the ts of the firing',
    file: 'src/engine/fire.ts',
    changes: [
      ['silenceOf(cause, time.silence, nowTs)', 'silenceOf(cause, time.silence, origin.ts)'],
    ],
  },
  {
    mistake: 'heldMs counts to the ts of the firing, however old',
    file: 'src/engine/fire.ts',
    changes: [['Math.max(ts, due?.t ?? ts) - sinceT', 'ts - sinceT']],
  },
  {
    mistake: "a notice is not told where another event's re-entry follows",
    file: 'src/cli/engine/play.ts',
    changes: [['asksForMove(actions) && transition', 'asksForMove === asksForMove && transition']],
  },
  {
    mistake: 'a measurement that a cause with noneForMs takes leaves T',
    file: 'src/engine/timed.ts',
    changes: [
      [
        '    own ??= draft.open(event);\n    dropOld(event, draft, own, t);\n',
        '    own ??= draft.open(event);\n    if (!cause.time?.noneForMs) dropOld(event, draft, own, t);\n',
      ],
      [
        '    dropOld(event, draft, own, t);\n  }',
        '    if (!cause.time?.noneForMs) dropOld(event, draft, own, t);\n  }',
      ],
    ],
  },
  {
    mistake: 'the age of the first measurement of a run decides between 2 s and a minute',
    file: 'src/engine/runtime.ts',
    changes: [
      [
        'dueOf(sinceT + forMs, t, moment)',
        'dueOf(sinceT + forMs, t, { ...moment, first: run?.newestAgeMs } as never)',
      ],
      [
        'moment.arrivedTs - moment.t > lateMs',
        '((moment as { first?: number }).first ?? moment.arrivedTs - moment.t) > lateMs',
      ],
    ],
  },
  {
    mistake: 'a tick that is due as a gap begins is put off',
    file: 'src/engine/last-seen.ts',
    changes: [['if (at > gap.fromTs && at < until)', 'if (at >= gap.fromTs && at < until)']],
  },
  {
    mistake: 'a tick in the first millisecond of a gap is not put off',
    file: 'src/engine/last-seen.ts',
    changes: [['if (at > gap.fromTs && at < until)', 'if (at > gap.fromTs + 1 && at < until)']],
  },
  {
    mistake: 'a tick fires at the newest measurement of a cause, also where that disagreed',
    file: 'src/engine/evaluator.ts',
    changes: [['(time?.causes[at]?.agreedT ?? t)', '(time?.causes[at]?.lastT ?? t)']],
  },
  {
    mistake: 'a firing has the earliest time at which its causes took the measurement',
    file: 'src/engine/timed.ts',
    changes: [['return Math.max(t, ...last);', 'return Math.min(...last);']],
  },
  {
    mistake: 'a run whose newest measurement is too old goes on with the new one',
    file: 'src/engine/timed.ts',
    changes: [
      [
        '    own ??= draft.open(event);\n    dropOld(event, draft, own, t);\n',
        '    own ??= draft.open(event);\n    if (!cause.time?.forMs) dropOld(event, draft, own, t);\n',
      ],
    ],
  },
  {
    mistake: 'relative and decimalAcc do not count for what is told of isAny',
    file: 'src/engine/thresholds.ts',
    changes: [
      [
        '  const difference = relative ?',
        "  if (arguments[0].reads === 'anything') return val;\n  const difference = relative ?",
      ],
    ],
  },
  {
    mistake: 'an old report of a state counts',
    file: 'src/ingest/rules/apply.ts',
    changes: [['&& report.ts < reported.ts', '&& report.ts < -Infinity']],
  },
  {
    mistake: 'a report of a state counts again',
    file: 'src/ingest/rules/apply.ts',
    changes: [
      ['report.ts === reported.ts && isSamePlace', 'report.ts === -Infinity && isSamePlace'],
    ],
  },
  {
    mistake: 'a report of a state without ts may be older than the one before it',
    file: 'src/ingest/rules/apply.ts',
    changes: [['return !isStamped && reported.ts', 'return reported.ts']],
  },
  {
    mistake: 'after a clock that was set right a silence waits for the time of then',
    file: runtime,
    changes: [
      ['const sinceTs = Math.min(silence.sinceTs, latestTs);', 'const { sinceTs } = silence;'],
    ],
  },
  {
    mistake: 'after a clock that was set right a silence that was complete is not',
    file: runtime,
    changes: [
      [
        '    silence.completeTs === null\n',
        '    silence.completeTs === null || sinceTs < silence.sinceTs\n',
      ],
    ],
  },
  {
    mistake: 'after a clock that was set right a silence was complete at once',
    file: runtime,
    changes: [
      [
        'Math.max(sinceTs + noneForMs, Math.min(silence.completeTs, latestTs))',
        'Math.min(silence.completeTs, latestTs)',
      ],
    ],
  },
  {
    mistake: 'after a clock that was set right a silence is complete in the time of then',
    file: runtime,
    changes: [
      [
        'Math.max(sinceTs + noneForMs, Math.min(silence.completeTs, latestTs))',
        'silence.completeTs',
      ],
    ],
  },
  {
    mistake: 'after a clock that was set right a run began in the time of then',
    file: runtime,
    changes: [['[Math.min(run.sinceT, latestTs),', '[run.sinceT,']],
  },
  {
    mistake: "after a clock that was set right a run's newest measurement is of the time of then",
    file: runtime,
    changes: [['Math.min(run.newestT, latestTs)]', 'run.newestT]']],
  },
  {
    mistake: 'after a clock that was set right a measurement is as old as by the arrivals of then',
    file: runtime,
    changes: [['Math.min(run.newestAgeMs, Math.max(0, latestTs - newestT));', 'run.newestAgeMs;']],
  },
  {
    mistake: 'after a clock that was set right T is of the time of then',
    file: runtime,
    changes: [['time.newestT === null ? null : Math.min(time.newestT, latestTs)', 'time.newestT']],
  },
  {
    mistake: 'after a clock that was set right a cause takes measurements at the time of then',
    file: runtime,
    changes: [['    lastT: latestTs,\n', '    lastT,\n']],
  },
  {
    mistake: 'after a clock that was set right a cause forgets when it took the last measurement',
    file: runtime,
    changes: [['    lastT: latestTs,\n', '    lastT: null,\n']],
  },
  {
    mistake: 'after a clock that was set right the newest one that agreed is of the time of then',
    file: runtime,
    changes: [['agreedT: agreedT === null ? null : Math.min(agreedT, latestTs)', 'agreedT']],
  },
  {
    mistake: 'after a clock that was set right the window of over goes on',
    file: runtime,
    changes: [['    bins: null,\n    outcomeTs', '    outcomeTs']],
  },
  {
    mistake: 'after a clock that was set right the outcomes of a window are of the time of then',
    file: runtime,
    changes: [['outcomeTs: outcomeTs?.map((t) => Math.min(t, latestTs)) ?? null', 'outcomeTs']],
  },
  {
    mistake: 'after a clock that was set right the outcomes of an episode are of the time of then',
    file: runtime,
    changes: [
      [
        'lately: lately?.map((one) => ({ ...one, t: Math.min(one.t, latestTs) })) ?? null',
        'lately',
      ],
    ],
  },
  {
    mistake:
      'after a clock that was set right the window of over begins anew, also where all of it came in time',
    file: runtime,
    changes: [
      [
        'run === time.run && silence === time.silence ? time : { ...time, run, silence };',
        '{ ...time, run, silence, bins: null };',
      ],
    ],
  },
  {
    mistake: 'after a clock that was set right the evidence of global states stays',
    file: runtime,
    changes: [
      ['evidenceBack(purpose?.globalEvents ?? [], runtime.global, latestTs)', 'runtime.global'],
    ],
  },
  {
    mistake: "after a clock that was set right the evidence of the device's own state stays",
    file: runtime,
    changes: [['evidenceBack(events, runtime.local, latestTs)', 'runtime.local']],
  },
  {
    mistake:
      'after a clock that was set right the n-th measurement of a run is of the time of then',
    file: 'src/engine/runtime.ts',
    changes: [['Math.max(leastT, Math.min(due.t, latestTs))', 'Math.max(leastT, due.t)']],
  },
  {
    mistake: 'after a clock that was set right a run is complete in the present at once',
    file: 'src/engine/runtime.ts',
    changes: [['Math.max(leastT, Math.min(due.t, latestTs))', 'Math.min(due.t, latestTs)']],
  },
  {
    mistake: 'after a clock that was set right a tick waits for the arrivals of then',
    file: 'src/engine/runtime.ts',
    changes: [['due.ts > earliestTs + lateMarginMs ? earliestTs + marginMs : due.ts', 'due.ts']],
  },
  {
    mistake:
      'after a clock that was set right a tick that is due before the present waits for d only',
    file: 'src/engine/runtime.ts',
    changes: [['const earliestTs = Math.max(t, latestTs);', 'const earliestTs = t;']],
  },
  {
    mistake: 'after a clock that was set right the tick of a late measurement comes after 2 s',
    file: 'src/engine/runtime.ts',
    changes: [['due.ts > earliestTs + lateMarginMs ?', 'due.ts > earliestTs + marginMs ?']],
  },
  {
    mistake:
      'after a clock that was set right a tick a minute after the present is brought back too',
    file: 'src/engine/runtime.ts',
    changes: [['due.ts > earliestTs + lateMarginMs ?', 'due.ts >= earliestTs + lateMarginMs ?']],
  },
  {
    mistake:
      'after a clock that was set right a tick of more than a minute after the present stays',
    file: 'src/engine/runtime.ts',
    changes: [['due.ts > earliestTs + lateMarginMs ?', 'due.ts > earliestTs + lateMarginMs + 1 ?']],
  },
  {
    mistake:
      'after a clock that was set right a tick is brought back to a minute after the present',
    file: 'src/engine/runtime.ts',
    changes: [['? earliestTs + marginMs : due.ts', '? earliestTs + lateMarginMs : due.ts']],
  },
  {
    mistake: 'a clock that is set right lets messages be 9.999 s later than it says',
    file: 'src/cli/engine/play.ts',
    changes: [['nowTs + aheadMs', 'nowTs + aheadMs - 1']],
  },
  {
    mistake: 'a clock that is set right lets messages be 10.001 s later than it says',
    file: 'src/cli/engine/play.ts',
    changes: [['nowTs + aheadMs', 'nowTs + aheadMs + 1']],
  },
];
