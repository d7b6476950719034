/** One packet within `bytes`: its variable header and payload are `start` up to `end`. */
export type OnFrame = (header: number, bytes: Buffer, start: number, end: number) => void;

/**
 * Splits what a socket brings into MQTT packets (3.1.1, section 2.2). The bytes handed over are valid
 * only during the call: the caller may reuse the chunk's memory, what is left of it is copied.
 */
export function createFrameReader(onFrame: OnFrame): (chunk: Buffer) => void {
  let rest: Buffer | null = null;
  return (chunk) => {
    const bytes: Buffer = rest ? Buffer.concat([rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      const body = findBody(bytes, at);
      if (body === null || body.end > bytes.length) break;
      onFrame(bytes[at] as number, bytes, body.start, body.end);
      at = body.end;
    }
    rest = at === bytes.length ? null : Buffer.from(bytes.subarray(at));
  };
}

const shortBody = { start: 0, end: 0 };

/** Where the packet at `at` has its body, or null while its length is not there yet. */
function findBody(bytes: Buffer, at: number): { start: number; end: number } | null {
  let length = 0;
  let factor = 1;
  for (let index = at + 1; index < at + 5; index += 1) {
    const digit = bytes[index];
    if (digit === undefined) return null;
    length += (digit & 0x7f) * factor;
    if (digit < 0x80) {
      // Reused: this runs for every acknowledgement.
      shortBody.start = index + 1;
      shortBody.end = index + 1 + length;
      return shortBody;
    }
    factor *= 128;
  }
  throw new Error('A packet length of more than four bytes.');
}
