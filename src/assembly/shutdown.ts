import { inTime, StepCut, type StopBudget } from './stop-budget.ts';
import type { Log } from '../log/logger.ts';

/** A step of stopping by its name in the log. It is told how many milliseconds it has. */
type Step = { name: string; run: (withinMs: number) => unknown };

/** What has been acquired so far, and how it is given back: last in, first out. */
export type ReleaseSteps = {
  add(name: string, release: (withinMs: number) => unknown): void;
  /** How many there are. */
  count(): number;
  /**
   * Gives everything back but the first `keep`, also where a release fails or hangs. Names of those that did.
   */
  releaseAll(budget: StopBudget, keep?: number): Promise<string[]>;
};

/** Where others come in: closed first, and together, as HTTP hands connections over to MQTT. */
export type Edges = {
  /** `close` finishes what is under way. */
  add(name: string, close: (withinMs: number) => Promise<void>): void;
  /** Closes them all, also where one fails or hangs. Names of those that did. */
  close(budget: StopBudget): Promise<string[]>;
};

/** What is under way gets most of the time; what is left is enough for giving back. */
const edgesPart = 0.6;
/** So that five releases that hang leave more than a tenth of the time to those behind them. */
const releasePart = 1 / 3;

export function createEdges(log: Log): Edges {
  const edges: Step[] = [];
  return {
    add: (name, run) => void edges.push({ name, run }),
    async close(budget) {
      const shareMs = budget.share(edgesPart);
      const closing = edges.splice(0).map(async (edge) => runStep(edge, shareMs, log));
      return (await Promise.all(closing)).flat();
    },
  };
}

export function createReleases(log: Log): ReleaseSteps {
  const held: Step[] = [];
  return {
    add: (name, run) => void held.push({ name, run }),
    count: () => held.length,
    async releaseAll(budget, keep = 0) {
      const unfinished: string[] = [];
      while (held.length > keep) {
        const release = held.pop();
        if (!release) break;
        const shareMs = budget.share(held.length > 0 ? releasePart : 1);
        unfinished.push(...(await runStep(release, shareMs, log)));
      }
      return unfinished;
    },
  };
}

/** Never rejects: the steps behind it have to run. Its name where it did not end as it should. */
export async function runStep({ name, run }: Step, shareMs: number, log: Log): Promise<string[]> {
  try {
    await inTime(run, shareMs);
    return [];
  } catch (err) {
    if (err instanceof StepCut)
      log.warn(
        { event: 'stop.step-cut', step: name, shareMs: err.shareMs },
        'A step of stopping took longer than its share and was left.',
      );
    else log.error({ event: 'stop.step-failed', step: name, err }, 'A step of stopping failed.');
    return [name];
  }
}
