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
  const downTo = async (depth: number) => {
    while (releases.length > depth) await releases.pop()?.();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void downTo(0).finally(() => process.exit(1)));
  return {
    defer: (release) => void releases.push(release),
    depth: () => releases.length,
    downTo,
  };
}
