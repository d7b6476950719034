import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

/** Tests that load the machine, or measure what they do to it: they run after the others, one by one. */
const alone = [
  'test/accounts/load.test.ts',
  'test/bench/**/*.test.ts',
  'test/cluster/{mosquitto,processes,rolling-restart}.test.ts',
  'test/connector/{hostile,memory,overload}.test.ts',
  'test/events/load.test.ts',
  'test/faults/**/*.test.ts',
];

/** `npm run test:long` runs these. */
const long = 'test/**/*.long.test.ts';

/** Runs some tests side by side and then others one by one; where a test is in both, it runs alone. */
export function configFor(tests: {
  include: string[];
  alone: string[];
  exclude?: string[];
}): ViteUserConfig {
  const { include, exclude = [] } = tests;
  const shared = {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // The programs that tests start find their code compiled: a third less of the processor's time.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
  };
  return defineConfig({
    test: {
      // Of the run as a whole: the projects below are given what it provides.
      globalSetup: ['test/harness/global-setup.ts'],
      reporters: ['default', './test/harness/summary-reporter.ts'],
      coverage: { include: ['src/**', 'connector/**'] },
      projects: [
        {
          test: {
            name: 'together',
            include,
            exclude: [...tests.alone, ...exclude],
            maxWorkers: Math.max(2, availableParallelism()),
            sequence: { groupOrder: 0 },
            ...shared,
          },
        },
        {
          test: {
            name: 'alone',
            include: tests.alone,
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

export default configFor({ include: ['test/**/*.test.ts'], alone, exclude: [long] });
