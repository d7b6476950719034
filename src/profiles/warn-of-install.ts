import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warnOfActions } from '../contract/warn-of-actions.ts';
import { joinWarnings, type Warning } from '../contract/warnings.ts';
import type { Sql } from '../db/sql.ts';
import { warnOfPolygons } from '../engine/warn-of-polygons.ts';
import { listWarningsInTurns } from '../engine/warnings-in-turns.ts';
import { nextTurn } from '../lib/in-turns.ts';
import { countOwnEngines, listDeviceSenses } from './queries.ts';
import { findServiceOnly, warnOfOwnEngines } from './warn-of-own-engines.ts';

// For more devices their senses are not read: that takes too long for a warning.
const maxWarnedDevices = 1_000;

type Installed = {
  purposes: Purpose[];
  deviceIds: number[];
  pathOf: PurposePath;
  /** Warnings about SMS that purposes ask for. */
  ofSms: () => Promise<Warning[]>;
};

/** What purposes that were installed on these devices may not do as they were meant to. */
export async function warnOfInstall(
  db: Sql,
  { purposes, deviceIds, pathOf, ofSms }: Installed,
): Promise<Warning[]> {
  const senses =
    deviceIds.length > maxWarnedDevices
      ? undefined
      : [await listDeviceSenses(db, deviceIds, sensesOf(purposes))];
  const sms = await ofSms();
  const serviceOnly = findServiceOnly(purposes, pathOf);
  const ofOwnEngines =
    serviceOnly && warnOfOwnEngines(serviceOnly, await countOwnEngines(db, deviceIds));
  const ofEngine = await listWarningsInTurns(purposes, senses, pathOf, nextTurn);
  const ofParts = [warnOfPolygons, warnOfActions].map((warnOf) => warnOf(purposes, pathOf));
  return joinWarnings(ofEngine, ofOwnEngines ?? [], ...ofParts, sms);
}

/** All that any cause of these purposes reads. */
function sensesOf(purposes: Purpose[]): string[] {
  const senses = new Set<string>();
  for (const { states } of purposes)
    for (const { events } of states)
      for (const { causes } of events) for (const { sId } of causes) senses.add(sId);
  return [...senses];
}
