/** Whether work may be sent to this process: it has started, does not stop, and has what it needs. */
export type Readiness = {
  /**
   * Adds something that has to hold, by the name that `/readyz` gives for it. `check` answers within
   * a second or so and never throws.
   */
  add(name: string, check: () => boolean | Promise<boolean>): void;
  /** Everything listens that is to listen. */
  started(): void;
  /** From now on never ready again. */
  stopping(): void;
  isStopping(): boolean;
  /** Names of what keeps work away, in the order in which they were added; empty when ready. */
  listUnready(): Promise<string[]>;
};

type Stage = 'starting' | 'serving' | 'shutting down';

export function createReadiness(): Readiness {
  const checks: { name: string; check: () => boolean | Promise<boolean> }[] = [];
  let stage: Stage = 'starting';
  return {
    add: (name, check) => void checks.push({ name, check }),
    started() {
      if (stage === 'starting') stage = 'serving';
    },
    stopping: () => void (stage = 'shutting down'),
    isStopping: () => stage === 'shutting down',
    async listUnready() {
      if (stage !== 'serving') return [stage];
      const held = await Promise.all(checks.map(async ({ check }) => check()));
      return checks.filter((_, index) => !held[index]).map(({ name }) => name);
    },
  };
}
