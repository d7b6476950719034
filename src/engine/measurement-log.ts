import { z } from 'zod';
import type { Measurement } from '../contract/measurement.ts';

/** Runs of one sense: its name, the first time, and of each measurement its time since the one before, and its value. */
const Runs = z.array(z.tuple([z.string(), z.number(), z.array(z.unknown())]));

/**
 * Measurements in the order in which they were evaluated, as JSON, and short. A value is a number or
 * `[lat, long]`. What is read back (`decodeMeasurements`) evaluates to the same, bit by bit.
 */
export function encodeMeasurements(measurements: Measurement[]): string {
  let text = '';
  let sense: string | null = null;
  let last = 0;
  for (const { sId, val, ts } of measurements) {
    if (sId === sense) text += `,${ts - last},`;
    else {
      text += `${text === '' ? '[' : ']],['}${JSON.stringify(sId)},${ts},[0,`;
      sense = sId;
    }
    last = ts;
    text += typeof val === 'number' ? String(val + 0) : `[${val.lat + 0},${val.long + 0}]`;
  }
  return text === '' ? '[]' : `[${text}]]]`;
}

/** Throws on what `encodeMeasurements` does not write. */
export function decodeMeasurements(text: string): Measurement[] {
  const measurements: Measurement[] = [];
  for (const [sId, first, list] of Runs.parse(JSON.parse(text))) {
    let ts = first;
    for (let at = 0; at + 1 < list.length; at += 2) {
      ts += list[at] as number;
      measurements.push({ sId, val: toVal(list[at + 1]), ts });
    }
  }
  return measurements;
}

function toVal(given: unknown): Measurement['val'] {
  if (!Array.isArray(given)) return given as number;
  const [lat, long] = given as [number, number];
  return { lat, long };
}
