import type { Case, Cells, Sense } from './condition.ts';
import type { Rule, State } from './model.ts';

/** A case with the values of each sense for which it is true. */
export type ReadCase = Case & { cells: Map<Sense, Cells> };
/** A rule whose condition could be read. */
export type ReadRule = { rule: Rule; cases: ReadCase[] };
export type ReadState = { state: State; events: ReadRule[]; transitions: ReadRule[] };

type Known = { hasTimers: boolean; inputs: readonly string[] };

/**
 * Where a detector compares a value again that it has compared already: it remembers the last value of each input, and
 * looks at all conditions of its state when another input arrives, or a timer ends. A purpose compares a value when it
 * is measured. Both are the same if the value cannot agree: because it led to this state, or did not lead out of it.
 * Gives a text for each condition of which this is not certain.
 */
export function watchLatched(
  states: readonly ReadState[],
  initial: string,
  { hasTimers, inputs }: Known,
): { rule: Rule; text: string }[] {
  const latched = followValues(states, initial);
  const found: { rule: Rule; text: string }[] = [];
  for (const read of states)
    for (const which of ['events', 'transitions'] as const)
      for (const { rule, cases } of read[which])
        for (const one of cases) {
          if (one.timers.length > 0 || one.cells.size > 1) continue;
          const again = comparedAgain(one, { hasTimers, inputs });
          if (again === null) continue;
          const [[sense, agrees] = []] = one.cells;
          const values = latched.get(read);
          const known = which === 'events' ? values?.last : values?.entered;
          const isCertain =
            sense !== undefined &&
            agrees !== undefined &&
            ((known?.get(sense) ?? 0n) & agrees) === 0n;
          if (!isCertain)
            found.push({
              rule,
              text: `is looked at again when ${again}; here only when ${sense ? 'its sense is measured' : 'something arrives'}`,
            });
        }
  return found;
}

/** When a condition is looked at although its input did not arrive; null: never. */
function comparedAgain({ cells, inputs: named, isMessage }: ReadCase, known: Known): string | null {
  if (named.length > 0) return null;
  // Without a value to compare it is true whatever arrives.
  if (cells.size > 0 && known.inputs.length > 1) return 'another input arrives';
  return known.hasTimers && !isMessage ? 'a timer ends' : null;
}

/** The last values that are possible when a state is entered, and while it lasts. */
type Values = { entered: Map<Sense, Cells>; last: Map<Sense, Cells> };

/** Follows all transitions until nothing new is possible. */
function followValues(states: readonly ReadState[], initial: string): Map<ReadState, Values> {
  const senses = new Set(
    states.flatMap(({ events, transitions }) =>
      [...events, ...transitions].flatMap(({ cases }) =>
        cases.flatMap(({ cells }) => [...cells.keys()]),
      ),
    ),
  );
  const values = new Map<ReadState, Values>();
  const begin = states.find(({ state }) => state.name === initial);
  const waiting = begin ? [begin] : [];
  if (begin) values.set(begin, { entered: new Map(), last: new Map() });
  for (let read = waiting.pop(); read; read = waiting.pop()) {
    const { entered, last } = values.get(read) as Values;
    for (const sense of senses) last.set(sense, (entered.get(sense) ?? 0n) | staying(read, sense));
    for (const { rule, cases } of read.transitions) {
      const target = states.find(({ state }) => state.name === rule.next);
      if (!target) continue;
      const isNew = !values.has(target);
      const next = values.get(target) ?? { entered: new Map<Sense, Cells>(), last: new Map() };
      values.set(target, next);
      let grows = isNew;
      for (const one of cases)
        for (const sense of senses) {
          const before = next.entered.get(sense) ?? 0n;
          const after = before | leading(one, sense, last.get(sense) ?? 0n);
          next.entered.set(sense, after);
          grows ||= after !== before;
        }
      if (grows) waiting.push(target);
    }
  }
  return values;
}

/** The values that leave a device in this state. */
function staying({ transitions }: ReadState, sense: Sense): Cells {
  const leaving = transitions.flatMap(({ cases }) =>
    cases.flatMap(({ cells, timers, inputs }) => {
      const isOnly = timers.length === 0 && [...cells.keys()].every((one) => one === sense);
      if (!isOnly || inputs.some((input) => input !== sense.value.input)) return [];
      return [cells.get(sense) ?? sense.all];
    }),
  );
  return leaving.reduce((rest, cells) => rest & ~cells, sense.all);
}

/** The last values of the sense with which a case can be true. */
function leading({ cells, timers, inputs }: ReadCase, sense: Sense, last: Cells): Cells {
  const agrees = cells.get(sense);
  if (agrees !== undefined) return agrees;
  // Any of its messages, unless only those of another input or a timer can do it.
  const isOwn = timers.length === 0 && (inputs.length === 0 || inputs.includes(sense.value.input));
  return isOwn && cells.size === 0 ? sense.all : last;
}
