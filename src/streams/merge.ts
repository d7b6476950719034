import type { StreamPiece } from './server-sent.ts';

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
