/** What has been acquired and is to be let go, last in, first out. */
export type Releases = {
  defer: (release: () => Promise<unknown>) => void;
  /** How much waits to be let go: what `downTo` is given later. */
  depth: () => number;
  downTo: (depth: number) => Promise<void>;
};

/** Lets everything go also when the program is asked to end. */
export function createReleases(): Releases {
  const releases: (() => Promise<unknown>)[] = [];
  let underWay: Promise<unknown> = Promise.resolve();
  // What is being let go is waited for: a program that fails while it is asked to end must not be faster.
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
