import { costOf } from '../rules/model.ts';
import type { Unit } from '../rules/message.ts';
import type { DeviceQueue, Work } from './device-queue.ts';
import type { DeviceQueues } from '../queues.ts';
import type { AccountTurns } from './turns.ts';

/**
 * The next batch: what is next by the accounts' turns, up to about `maxCost` (`Budget`, by estimate), which
 * accounts are charged. A device whose account has spent its turn keeps the rest of its messages, and goes
 * on with them in the same batch where the turn comes round to it again. `turns`: those of messages, or of ticks.
 */
export function takeBatch(
  queues: DeviceQueues,
  maxCost: number,
  turns: AccountTurns<DeviceQueue> = queues.turns,
): Work[] {
  const batch: Work[] = [];
  let again: Map<DeviceQueue, Work> | null = null;
  let cost = 0;
  while (cost < maxCost) {
    const queue = turns.next();
    if (!queue) break;
    const begun = queue.busy ? again?.get(queue) : undefined;
    const work = begun ?? { queue, units: [] };
    const taken = takeUnits(work, Math.min(maxCost - cost, turns.room()), !begun, queues);
    // Turns of ticks are beside those of messages; what they take is the account's all the same.
    queue.isTicking = turns !== queues.turns;
    if (queue.isTicking) turns.charge(queue.accountId, taken);
    cost += taken;
    if (!begun) batch.push(work);
    queue.busy = true;
    queue.ready = queue.waiting.length > 0;
    if (!queue.ready) continue;
    (again ??= new Map()).set(queue, work);
    turns.add(queue);
  }
  for (const queue of again?.keys() ?? []) {
    if (queue.ready) turns.remove(queue);
    queue.ready = false;
  }
  return batch;
}

/**
 * Takes the first of a device's messages, at least one and of about the cost `room`, into its part of the batch; gives
 * their cost.
 */
function takeUnits(work: Work, room: number, isFirst: boolean, queues: DeviceQueues): number {
  const { queue } = work;
  if (isFirst) queue.cost = costOf(queue.context);
  const { perItem } = queue.cost;
  const once = isFirst ? queue.cost.once : 0;
  const { waiting } = queue;
  const most = (room - once) / perItem;
  let items = 0;
  let count = 0;
  while (count < waiting.length && (count === 0 || items < most))
    items += (waiting[count++] as Unit).size;
  const units = count < waiting.length ? waiting.splice(0, count) : waiting;
  if (units === waiting) queue.waiting = [];
  queues.waiting -= units.length;
  if (isFirst) work.units = units;
  else for (const unit of units) work.units.push(unit);
  const estimate = items * perItem + once;
  queue.charged = isFirst ? estimate : queue.charged + estimate;
  // What reading takes is no part of a plan's cost, nor is parsing: that much stays charged.
  if (isFirst && !queue.context) queue.charged -= once;
  queues.turns.charge(queue.accountId, estimate + queue.parsingCost);
  queue.parsingCost = 0;
  return estimate;
}
