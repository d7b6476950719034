import type { Configuration, Sense } from './configuration.ts';

/** A device's senses by identifier; an `sId` is unique in its device. */
export function sensesOf(configuration: Configuration): ReadonlyMap<string, Sense> {
  const senses = configuration.module.flatMap((module) => module.senses);
  return new Map(senses.map((sense) => [sense.sId, sense]));
}
