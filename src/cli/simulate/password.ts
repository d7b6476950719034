import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

type Input = NodeJS.ReadableStream & { isTTY?: boolean };

/** The first line of `input`; on a terminal it is asked for and not shown. Throws when there is none. */
export async function readPassword(
  email: string,
  input: Input,
  output: { write(text: string): unknown },
): Promise<string> {
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  if (input.isTTY) output.write(`Password of ${email}: `);
  const lines = createInterface({ input, output: hidden, terminal: input.isTTY === true });
  try {
    for await (const line of lines) return line;
  } finally {
    lines.close();
    if (input.isTTY) output.write('\n');
  }
  throw new Error('No password: standard input is empty.');
}
