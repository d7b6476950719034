/** Clean-up functions of what was acquired, called in reverse order. */
export type Releases = {
  defer: (release: () => Promise<unknown>) => void;
  /** Their number; pass it to `downTo` later. */
  depth: () => number;
  downTo: (depth: number) => Promise<void>;
};

/** Also cleans up when the program gets SIGINT or SIGTERM. */
export function createReleases(): Releases {
  const releases: (() => Promise<unknown>)[] = [];
  let underWay: Promise<unknown> = Promise.resolve();
  // Waits for a clean-up under way, even if the program fails meanwhile.
  const downTo = async (depth: number) => {
    const mine = underWay
      .catch(() => undefined)
      .then(async () => {
        while (releases.length > depth) await releases.pop()?.();
      });
    underWay = mine;
    await mine;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void downTo(0).finally(() => process.exit(1)));
  return {
    defer: (release) => void releases.push(release),
    depth: () => releases.length,
    downTo,
  };
}
