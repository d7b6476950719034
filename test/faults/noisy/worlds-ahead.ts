import type { NoisyKind } from './kind.ts';
import { startNoisyWorld, type NoisyRun, type NoisyWorld } from './run-noisy.ts';

/**
 * Starts the installation of the next kind while one is measured without noise, and closes the one before
 * meanwhile: half of a run is to start and to end.
 */
export function createWorldsAhead(kinds: readonly NoisyKind[], run: NoisyRun) {
  let closing: Promise<unknown> = Promise.resolve();
  let next: { kind: NoisyKind; fresh: Promise<NoisyWorld> } | null = null;

  function start(kind: NoisyKind): Promise<NoisyWorld> {
    const fresh = startNoisyWorld(kind, run);
    // Whoever takes it is told.
    fresh.catch(() => undefined);
    return fresh;
  }

  return {
    async take(kind: NoisyKind): Promise<NoisyWorld> {
      const started = next?.kind === kind ? next.fresh : start(kind);
      if (next?.kind !== kind) await this.close();
      next = null;
      const world = await started;
      const following = kinds[kinds.indexOf(kind) + 1];
      if (following) next = { kind: following, fresh: start(following) };
      const close = async () => {
        closing = Promise.all([closing, world.close()]);
        // `close` below is told.
        closing.catch(() => undefined);
      };
      return { ...world, close };
    },
    async close(): Promise<void> {
      const unused = next;
      next = null;
      await closing;
      await unused?.fresh.then(({ close }) => close());
    },
  };
}
