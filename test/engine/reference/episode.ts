import type { Cause } from '../../../src/contract/purpose.ts';
import type { Live } from './standing.ts';
import { isKept, isOutcomeOf, windowLength, type Log, type Outcome } from './log.ts';

/**
 * Whether the event has fired since its state was entered, and a group of causes that held at a firing since then has
 * had no cause that disagreed after it.
 */
export function hasEpisode(
  { entries }: Log,
  { causes, groups }: Pick<Live, 'causes' | 'groups'>,
): boolean {
  let since: number | null = null;
  const held = new Set<number>();
  for (const [position, entry] of entries.entries()) {
    if (entry.kind === 'fired') {
      since ??= position;
      for (const group of entry.groups) held.add(group);
    }
    if (since === null || entry.kind !== 'taken' || entry.outcome?.agrees !== false) continue;
    const cause = causes[entry.cause];
    const known = entries.slice(0, position + 1);
    if (!cause || !disagrees(cause, outcomesOf(entry.cause, cause, known, since))) continue;
    held.delete(groups.findIndex((indexes) => indexes.includes(entry.cause)));
    if (held.size === 0) since = null;
  }
  return since !== null;
}

/** The outcomes of one cause since the episode began, without those that are too old. */
function outcomesOf(index: number, cause: Cause, known: Log['entries'], since: number): Outcome[] {
  const last = known.length - 1;
  return known
    .filter((_entry, at) => at >= since && (at === last || isKept(known, at, cause)))
    .filter(isOutcomeOf(index));
}

function disagrees(cause: Cause, outcomes: Outcome[]): boolean {
  const { n, m } = windowLength(cause);
  if (m === n) return outcomes.at(-1)?.outcome.agrees === false;
  return outcomes.slice(-m).filter(({ outcome }) => !outcome.agrees).length > m - n;
}
