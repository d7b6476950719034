import type { Configuration, Sense } from '../api/types.ts';

/** A device's senses, by sId. */
export function sensesOf({ module }: Pick<Configuration, 'module'>): Map<string, Sense> {
  const senses = module.flatMap(({ senses }) => senses);
  return new Map(senses.map((sense) => [sense.sId, sense]));
}

export const nameOfSense = (sId: string, sense: Sense | undefined): string => sense?.name ?? sId;
