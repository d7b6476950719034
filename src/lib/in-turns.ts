import { setImmediate } from 'node:timers/promises';

/** Lets others have their turn of the event loop. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}

/** Each of them is ten or twenty microseconds of work. */
const visitedInTurn = 100;

/** Visits the things that are there now one after the other; where there are thousands, others have their turn. */
export async function inTurns<T>(things: Iterable<T>, visit: (thing: T) => void): Promise<void> {
  for (const [index, thing] of Array.from(things).entries()) {
    if (index > 0 && index % visitedInTurn === 0) await nextTurn();
    visit(thing);
  }
}
