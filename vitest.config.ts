import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

/** Tests that load the machine, or measure what they do to it. */
const alone = [
  'test/accounts/load.test.ts',
  'test/bench/**/*.test.ts',
  'test/cluster/{mosquitto,processes,rolling-restart}.test.ts',
  'test/connector/{hostile,memory,overload}.test.ts',
  'test/events/load.test.ts',
  'test/faults/**/*.test.ts',
  'test/memory/{names,profiles}.test.ts',
];

/** `npm run test:long` runs these: vitest.long.config.ts. */
export const long = 'test/**/*.long.test.ts';

type Tests = {
  include: string[];
  exclude: string[];
  /** Those of `include` that run after the others, one by one. */
  alone: string[];
  /** Which part of the cases that are shared out they run: test/support/share.ts. */
  part: 'short' | 'long';
};

export function configFor({ include, exclude, alone, part }: Tests): ViteUserConfig {
  const shared = {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // The programs that tests start find their code compiled: a third less of the processor's time.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node'),
      TEST_PART: part,
    },
  };
  return defineConfig({
    test: {
      // Of the run as a whole: the projects below are given what it provides.
      globalSetup: ['test/support/global-setup.ts'],
      reporters: ['default', './test/support/summary-reporter.ts'],
      coverage: { include: ['src/**', 'connector/**'] },
      projects: [
        {
          test: {
            name: 'together',
            include,
            exclude: [...alone, ...exclude],
            // One more than processors: many tests wait for a timer of the service or of a server.
            maxWorkers: Math.max(2, availableParallelism()) + 1,
            sequence: { groupOrder: 0 },
            ...shared,
          },
        },
        {
          test: {
            name: 'alone',
            include: alone,
            exclude,
            maxWorkers: 1,
            sequence: { groupOrder: 1 },
            ...shared,
          },
        },
      ],
    },
  });
}

export default configFor({
  include: ['test/**/*.test.ts'],
  exclude: [long],
  alone,
  part: 'short',
});
