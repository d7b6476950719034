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

type Waiting<K> = { name: K; piece: StreamPiece<string>; taken: () => void };

/**
 * Pieces of several sources as they come, each source waiting until its last one was taken. Ends with the
 * first source that does. A source that waits for something has to be ended by whoever made it.
 */
export async function* merge<K>(
  sources: readonly (readonly [K, AsyncGenerator<StreamPiece<string>>])[],
): AsyncGenerator<[K, StreamPiece<string>]> {
  const waiting: Waiting<K>[] = [];
  let wake: (() => void) | undefined;
  let isOver = false;
  let failed: { error: unknown } | undefined;

  const pump = async (name: K, source: AsyncGenerator<StreamPiece<string>>): Promise<void> => {
    try {
      for await (const piece of source) {
        if (isOver) return;
        await new Promise<void>((taken) => {
          waiting.push({ name, piece, taken });
          wake?.();
        });
      }
    } catch (error) {
      failed ??= { error };
    } finally {
      isOver = true;
      wake?.();
    }
  };
  for (const [name, source] of sources) void pump(name, source);
  try {
    for (;;) {
      const next = waiting.shift();
      if (next) {
        yield [next.name, next.piece];
        next.taken();
        continue;
      }
      if (failed) throw failed.error;
      if (isOver) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await promise;
      wake = undefined;
    }
  } finally {
    isOver = true;
    for (const { taken } of waiting) taken();
  }
}
