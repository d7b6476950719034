import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Writes a line; resolves when there is room for another. */
export type WriteLine = (line: string) => Promise<void>;

export function lineWriter(output: Writable): WriteLine {
  return async (line) => {
    if (!output.write(`${line}\n`)) await once(output, 'drain');
  };
}
