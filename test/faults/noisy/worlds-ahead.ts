import type { NoisyKind } from './kind.ts';
import { startNoisyWorld, type NoisyRun, type NoisyWorld } from './run-noisy.ts';

/** Starts the installation of the next kind while one is measured without noise: half of a run is to start. */
export function createWorldsAhead(kinds: readonly NoisyKind[], run: NoisyRun) {
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
      return world;
    },
    async close(): Promise<void> {
      const unused = next;
      next = null;
      await unused?.fresh.then(({ close }) => close());
    },
  };
}
