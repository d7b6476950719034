import { inTime, type StopBudget } from './budget.ts';

/** What has been acquired so far, and how it is given back: last in, first out. */
export type Releases = {
  /** `release` is told how many milliseconds it has; one that takes longer is left behind. */
  add(release: (withinMs: number) => unknown): void;
  /** Gives everything back, even where one release fails; the first failure is thrown at the end. */
  releaseAll(budget: StopBudget): Promise<void>;
};

/** Where others come in: closed first, and together, as HTTP hands connections over to MQTT. */
export type Edges = {
  /** `close` is told how many milliseconds it has to finish what is under way. */
  add(close: (withinMs: number) => Promise<void>): void;
  /** Closes them all, even where one fails; the first failure is thrown at the end. */
  close(budget: StopBudget): Promise<void>;
};

/** What is under way gets most of the time; what is left is enough for giving back. */
const edgesPart = 0.6;
/** So that one release that hangs takes no time from those behind it but half of what is left. */
const releasePart = 0.5;

export function createEdges(): Edges {
  const edges: ((withinMs: number) => Promise<void>)[] = [];
  return {
    add: (close) => void edges.push(close),
    close: async (budget) => {
      const shareMs = budget.share(edgesPart);
      const closing = edges.splice(0).map((close) => inTime(close, shareMs));
      const failed = (await Promise.allSettled(closing)).find(
        ({ status }) => status === 'rejected',
      );
      if (failed?.status === 'rejected') throw failed.reason;
    },
  };
}

export function createReleases(): Releases {
  const held: ((withinMs: number) => unknown)[] = [];
  return {
    add: (release) => void held.push(release),
    async releaseAll(budget) {
      const failures: unknown[] = [];
      for (let release = held.pop(); release; release = held.pop()) {
        try {
          await inTime(release, budget.share(held.length > 0 ? releasePart : 1));
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
