/** What has been acquired so far, and how it is given back: last in, first out. */
export type Releases = {
  add(release: () => unknown): void;
  /** Gives everything back, even where one release fails; the first failure is thrown at the end. */
  releaseAll(): Promise<void>;
};

/** Where others come in: closed first, and together, as HTTP hands connections over to MQTT. */
export type Edges = { add(close: () => Promise<void>): void; close(): Promise<void> };

export function createEdges(): Edges {
  const edges: (() => Promise<void>)[] = [];
  return {
    add: (close) => void edges.push(close),
    close: async () => {
      await Promise.all(edges.splice(0).map((close) => close()));
    },
  };
}

export function createReleases(): Releases {
  const held: (() => unknown)[] = [];
  return {
    add: (release) => void held.push(release),
    async releaseAll() {
      const failures: unknown[] = [];
      for (let release = held.pop(); release; release = held.pop()) {
        try {
          await release();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
