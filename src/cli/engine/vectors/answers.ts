import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../../lib/thrown.ts';
import { InputError } from '../input-error.ts';
import type { WriteLine } from '../write.ts';
import { answerCase } from './answer-case.ts';
import { readCases } from './cases.ts';

/** Writes what this engine answers to every case: a file of NDJSON beside each of test/vectors. Throws `InputError`. */
export async function writeAnswers(folder: string, out: WriteLine): Promise<void> {
  makeFolder(folder);
  for (const { name, cases } of readCases()) {
    const lines = cases.map((one) => `${JSON.stringify(answerCase(one))}\n`);
    const path = join(folder, `${name}.ndjson`);
    writeFileSync(path, lines.join(''));
    await out(`${path}: ${cases.length} answers`);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new InputError(`${folder} cannot be made: ${messageOf(error)}`);
  }
}
