import { Readable } from 'node:stream';

/** The `text/event-stream` format of the HTML standard, section 9.2. */
export const eventStreamType = 'text/event-stream';

/** A chunk holds about so much, or one event: as much is kept for a reader that has stopped reading. */
export const chunkBytes = 65_536;

/**
 * A part of a stream that any number of readers can be sent. `position`: where a reader is that has read it.
 * With `hasIds` its messages say so themselves; else the last message still lacks its `id` and the blank line
 * that ends it (`endWith`), because the id of a stream that carries several kinds names a place in each.
 */
export type StreamPiece<P> = { bytes: Buffer; position: P };

/** One message without its id and its end. `event` and `data` hold no line break. */
export function writeMessage(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n`;
}

/** Messages that have no id yet, and the id of the last one. */
export function endWith(bytes: Buffer, id: string): Buffer {
  return Buffer.concat([bytes, Buffer.from(`id: ${id}\n\n`)]);
}

/** Sent while nothing happens: keeps the way open. */
export const stillHere = ': still here\n';

/**
 * A stream that is pulled: nothing is read ahead for a reader that does not read, and one that lets a
 * chunk wait for longer than `patienceMs` is cut off. It resumes where it was.
 */
export function cutOffWhenSlow(source: AsyncIterable<Buffer>, patienceMs: number): Readable {
  const readable: Readable = Readable.from(
    (async function* () {
      for await (const chunk of source) {
        const timer = setTimeout(() => readable.destroy(new Error('slow reader')), patienceMs);
        try {
          yield chunk;
        } finally {
          clearTimeout(timer);
        }
      }
    })(),
    { highWaterMark: 1 },
  );
  return readable;
}
