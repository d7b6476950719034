import type { Sql } from '../db/sql.ts';
import { findNeighbours, type Neighbours } from './neighbours.ts';
import { insertPoints, placesPerMillisecond, type Point } from './points.ts';

/**
 * Stores points in milliseconds that have other values already: the same value may be there too, a new
 * one gets the next place. Gives how many were added, and those whose millisecond is full.
 */
export async function placeBeside<P extends Point>(
  sql: Sql,
  points: readonly P[],
  onAdded?: (point: P) => void,
): Promise<{ added: number; unplaced: P[] }> {
  let added = 0;
  for (;;) {
    const { placed, unplaced } = arrange(await findNeighbours(sql, points));
    const inserted = await insertPoints(sql, placed, onAdded);
    added += inserted;
    // Another transaction may have taken a first place meanwhile: the next round sees its row.
    if (inserted === placed.length) return { added, unplaced };
  }
}

function arrange<P extends Point>(all: Neighbours<P>[]): { placed: P[]; unplaced: P[] } {
  const placed: P[] = [];
  const unplaced: P[] = [];
  const added = new Map<string, Set<string>>();
  for (const { point, isThere, taken } of all) {
    const millisecond = `${point.seriesId} ${point.ts}`;
    const value = `${point.val} ${point.long}`;
    const values = added.get(millisecond) ?? new Set();
    if (isThere || values.has(value)) continue;
    const micros = taken + values.size;
    if (micros >= placesPerMillisecond) unplaced.push(point);
    else {
      placed.push({ ...point, micros });
      added.set(millisecond, values.add(value));
    }
  }
  return { placed, unplaced };
}
