/** One packet within `bytes`: its variable header and payload are from `start` up to `end`. */
export type OnFrame = (header: number, bytes: Buffer, start: number, end: number) => void;

/**
 * Splits the bytes of a socket into MQTT packets (3.1.1, section 2.2). The bytes passed on are valid only during the
 * call: the caller may reuse the chunk's memory, and incomplete packets are copied.
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

/** Where the body of the packet at `at` is; null while its length is incomplete. */
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
