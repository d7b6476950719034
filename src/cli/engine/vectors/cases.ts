import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { messageOf } from '../../../lib/thrown.ts';
import { InputError, parseWith, readJson } from '../input-error.ts';
import { readText } from '../read-purposes.ts';

const Place = z.object({ puId: z.int(), stId: z.int() });
const Step = z.record(z.string(), z.json());

/** What an engine answers to a case: of each step what it led to, with the names that the case has. */
export const Answer = z.object({ rule: z.string(), steps: z.array(Step), ends: Place });
export type Answer = z.infer<typeof Answer>;

/** A case of test/vectors, as its README describes it: what an engine is given, and what it has to answer. */
export const Case = Answer.extend({
  purposes: z.array(z.json()),
  installedTs: z.int().default(0),
  listening: z.array(z.object({ fromTs: z.int(), toTs: z.int().nullable() })).default([]),
  starts: Place.optional(),
});
export type Case = z.infer<typeof Case>;

/** `name`: without its ending. */
export type CaseFile = { name: string; cases: Case[] };

const folder = fileURLToPath(new URL('../../../../test/vectors', import.meta.url));

/** Reads test/vectors. Throws `InputError` where the installation has none. */
export function readCases(): CaseFile[] {
  return listFiles(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const path = join(folder, file);
      const cases = parseWith(Case.array(), readJson(readText(path), path), path);
      return { name: file.slice(0, -'.json'.length), cases };
    });
}

/** In alphabetical order. Throws `InputError`. */
export function listFiles(of: string): string[] {
  try {
    return readdirSync(of).toSorted();
  } catch (error) {
    throw new InputError(`${of} cannot be read: ${messageOf(error)}`);
  }
}
