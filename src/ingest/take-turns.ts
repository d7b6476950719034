import { sizeOf } from './entry.ts';
import type { Unit } from './entry.ts';
import type { AccountTurns } from './account-turns.ts';
import type { Lane, Work } from './lane.ts';
import { costOf } from './weight.ts';

/**
 * Takes what is next by the accounts' turns, up to about `maxCost` (`Budget`, by estimate), and charges it.
 * A device whose account has spent its turn keeps the rest of its messages, and goes on with them in the
 * same batch where the turn comes round to it again.
 */
export function takeByTurns(turns: AccountTurns<Lane>, maxCost: number): Work[] {
  const batch: Work[] = [];
  let again: Map<Lane, Work> | null = null;
  let cost = 0;
  while (cost < maxCost) {
    const lane = turns.next();
    if (!lane) break;
    const begun = lane.busy ? again?.get(lane) : undefined;
    const work = begun ?? { lane, units: [] };
    const spent = takeUnits(work, Math.min(maxCost - cost, turns.room()), !begun);
    cost += spent;
    if (!begun) batch.push(work);
    lane.busy = true;
    lane.ready = lane.waiting.length > 0;
    if (!lane.ready) continue;
    (again ??= new Map()).set(lane, work);
    turns.add(lane);
  }
  for (const lane of again?.keys() ?? []) {
    if (lane.ready) turns.remove(lane);
    lane.ready = false;
  }
  return batch;

  function takeUnits(work: Work, room: number, isFirst: boolean): number {
    const { lane } = work;
    if (isFirst) lane.cost = costOf(lane.context);
    const { perItem } = lane.cost;
    const once = isFirst ? lane.cost.once : 0;
    const { items, units } = cutOff(lane, (room - once) / perItem);
    if (isFirst) work.units = units;
    else for (const unit of units) work.units.push(unit);
    const estimate = items * perItem + once;
    lane.charged = isFirst ? estimate : lane.charged + estimate;
    // What reading takes is no part of a plan's cost, nor is parsing: that much stays charged.
    if (isFirst && !lane.context) lane.charged -= once;
    turns.charge(lane.accountId, estimate + lane.parsing);
    lane.parsing = 0;
    return estimate;
  }
}

/** The first of its messages, as many as there is room for; at least one. */
function cutOff(lane: Lane, room: number): Pick<Work, 'units'> & { items: number } {
  let items = 0;
  let count = 0;
  const { waiting } = lane;
  while (count < waiting.length && (count === 0 || items < room)) {
    items += sizeOf((waiting[count++] as Unit).content);
  }
  if (count < waiting.length) return { items, units: waiting.splice(0, count) };
  lane.waiting = [];
  return { items, units: waiting };
}
