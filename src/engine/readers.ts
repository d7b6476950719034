import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import { wordBits } from './words.ts';

/** An event and which of its causes read one sense; what a measurement takes of all of them (`CompiledCause`). */
export type CauseReader = {
  event: LiveEvent;
  causes: number[];
  /** Of each of them above, below and whether it is negated (1), where numbers are compared with nothing else. */
  limits: Float64Array | null;
  /** Whether all of them do so, and have long windows: then it may take many numbers at once (`DeferredNumbers`). */
  isLong: boolean;
  /** Whether they do so and have windows of one outcome, and are all that the event has: only the newest number counts. */
  isNewestOnly: boolean;
  cost: number;
  costOfChange: number;
};

/** All that read a sense, in the order in which they are tried. */
export type Readers = ReadonlyMap<string, CauseReader[]>;

/** What reads which sense, of some events. */
export function readersOf(events: LiveEvent[]): Readers {
  const readers = new Map<string, CauseReader[]>();
  for (const event of events) {
    for (const [index, cause] of event.causes.entries()) {
      // What reads nothing collects nothing, and never holds.
      if (cause.reads !== 'nothing' || cause.time?.noneForMs)
        addReader(readers, event, index, cause);
    }
  }
  for (const list of readers.values())
    for (const reader of list) {
      const { event, causes } = reader;
      reader.limits = event.isTimed ? null : limitsOf(event.causes, causes);
      const isLong = (index: number) => (event.causes[index]?.windowLength ?? 1) > wordBits;
      reader.isLong = reader.limits !== null && causes.every(isLong);
      const isWhole = causes.length === event.causes.length;
      const isSingle = ({ isSingle: single }: CompiledCause) => single;
      // What agrees with everything fires each time: nothing is put off.
      const canDisagree = event.causes.some(({ reads, negate }) => reads === 'numbers' || negate);
      reader.isNewestOnly =
        reader.limits !== null && isWhole && canDisagree && event.causes.every(isSingle);
    }
  return readers;
}

/** Side by side, where they are read faster than from one cause after the other. */
function limitsOf(causes: CompiledCause[], indexes: number[]): Float64Array | null {
  const reading = indexes.map((index) => causes[index]).filter((cause) => cause !== undefined);
  if (!reading.every((cause) => cause.hasLimitsOnly)) return null;
  return Float64Array.from(
    reading.flatMap(({ above, below, negate }) => [above, below, negate ? 1 : 0]),
  );
}

function addReader(
  readers: Map<string, CauseReader[]>,
  event: LiveEvent,
  index: number,
  { sId, cost, costOfChange }: CompiledCause,
): void {
  const known = readers.get(sId);
  const last = known?.at(-1);
  if (last?.event === event) {
    last.causes.push(index);
    last.cost += cost;
    last.costOfChange += costOfChange;
    return;
  }
  const reader: CauseReader = {
    event,
    causes: [index],
    limits: null,
    isLong: false,
    isNewestOnly: false,
    cost,
    costOfChange,
  };
  if (known) known.push(reader);
  else readers.set(sId, [reader]);
}
