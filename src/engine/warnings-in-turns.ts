import type { DeviceSenses } from './known-senses.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warnInParts } from './warnings.ts';
import { maxWarnings, type Warning } from '../contract/warnings.ts';

/** What is looked through before others have their turn: some milliseconds. */
const sizeOfTurn = 2_000;

/** The first hundred warnings of a profile (`listWarnings`); others have their turn in each `pause`. */
export async function listWarningsInTurns(
  purposes: Purpose[],
  devices: DeviceSenses | undefined,
  pathOf: PurposePath,
  pause: () => Promise<void>,
): Promise<Warning[]> {
  const found: Warning[] = [];
  let size = 0;
  await pause();
  for (const part of warnInParts(purposes, devices, pathOf)) {
    found.push(...part.warnings);
    if (found.length >= maxWarnings) break;
    size += part.size;
    if (size < sizeOfTurn) continue;
    size = 0;
    await pause();
  }
  return found.slice(0, maxWarnings);
}
