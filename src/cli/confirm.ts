import { createInterface } from 'node:readline';

type Input = NodeJS.ReadableStream & { isTTY?: boolean };

/** Whether the first line of `input` is `expected`; on a terminal it is asked for. */
export async function confirm(
  question: string,
  input: Input,
  output: { write(text: string): unknown },
  expected = 'yes',
): Promise<boolean> {
  if (input.isTTY) output.write(question);
  const lines = createInterface({ input });
  try {
    for await (const line of lines) return line.trim() === expected;
  } finally {
    lines.close();
  }
  return false;
}
