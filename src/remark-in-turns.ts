import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DeviceSenses } from './core/never.ts';
import type { PurposePath } from './core/profile.ts';
import type { Purpose } from './core/purpose.ts';
import { remarkInParts } from './core/remarks.ts';
import type { Problem } from './errors.ts';

/** Whoever wrote that much that is hardly meant needs no list of all. */
const maxRemarks = 100;

/** What is looked through before others have their turn: some milliseconds. */
const sizeOfTurn = 2_000;

/** What there is to say of a profile (`remarkProfile`), the first hundred, found with pauses for others. */
export async function remarkInTurns(
  purposes: Purpose[],
  devices: DeviceSenses | undefined,
  pathOf: PurposePath,
): Promise<Problem[]> {
  const found: Problem[] = [];
  let size = 0;
  await nextTurn();
  for (const part of remarkInParts(purposes, devices, pathOf)) {
    found.push(...part.remarks);
    if (found.length >= maxRemarks) break;
    size += part.size;
    if (size < sizeOfTurn) continue;
    size = 0;
    await nextTurn();
  }
  return found.slice(0, maxRemarks);
}
