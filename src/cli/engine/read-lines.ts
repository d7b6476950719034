import type { Readable } from 'node:stream';
import { messageOf } from '../../lib/thrown.ts';
import { InputError } from './input-error.ts';

/** A line that is not empty, and its number from 1 on. */
export type Line = { line: number; text: string };

/** The lines of a text as they come. Throws `InputError` where it cannot be read. */
export async function* readLines(input: Readable, name: string): AsyncGenerator<Line> {
  input.setEncoding('utf8');
  let rest = '';
  let line = 0;
  try {
    for await (const chunk of input) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const text of lines) {
        line += 1;
        if (text.trim() !== '') yield { line, text };
      }
    }
  } catch (error) {
    throw new InputError(`${name} cannot be read: ${messageOf(error)}`);
  }
  if (rest.trim() !== '') yield { line: line + 1, text: rest };
}
