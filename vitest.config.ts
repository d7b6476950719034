import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Tests that load the machine, or measure what they do to it. */
export const alone = [
  'test/accounts/load.test.ts',
  'test/bench/in-flight.test.ts',
  'test/connector/{hostile,memory,overload}.test.ts',
  'test/events/load.test.ts',
];

/**
 * Tests that share a process: the service's modules are loaded once for all of them, which would otherwise take a
 * second of processor time each. They leave nothing running and change nothing global.
 */
export const together = [
  'test/{alarms,api-keys,connector-uptime,contacts,exports,idempotency,imports,jobs,journeys}/**/*.test.ts',
  'test/{accounts,bus,config,connector,contract,contracts,devices,docs,engine,events}/**/*.test.ts',
  'test/{bench,broker-hooks,faults,history,http,ingest,lib,measurements,metrics}/**/*.test.ts',
  'test/{live,notifications,profiles,purposes,quotas,secret-check,sessions,streams}/**/*.test.ts',
];

/** `npm run test:nightly` runs these: vitest.long.config.ts. */
export const longFiles = 'test/**/*.long.test.ts';

type Tests = {
  include: string[];
  exclude: string[];
  /** Files of `include` that share a process. */
  together: string[];
  /** Files of `include` that run after the others, one by one. */
  alone: string[];
  /** Which part of the shared-out cases they run: test/support/share.ts. */
  part: 'push' | 'short' | 'long';
};

export function configFor({ include, together, alone, part, ...rest }: Tests): ViteUserConfig {
  // Packages of the generated client contain tests of their own.
  const exclude = [...rest.exclude, '**/node_modules/**'];
  const limitMs = 360_000;
  const shared = {
    // Generous: on a busy machine a program takes ten times as long to start, and a hung test costs only its time.
    testTimeout: limitMs,
    hookTimeout: limitMs,
    // Programs, servers and clocks may be late on a busy machine. Tests that pass only at the second attempt are named
    // in the last lines. A lost message stays lost: the second verdict of test/faults covers the first attempt too.
    retry: 1,
    expect: { poll: { timeout: 60_000 } },
    // The programs that tests start find their code compiled, which saves a third of the processor time.
    env: {
      NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node'),
      TEST_PART: part,
    },
  };
  // Four more than processors, because for a third of the time tests wait for a timer of the service or for a server.
  const first = { ...shared, maxWorkers: availableParallelism() + 4, sequence: { groupOrder: 0 } };
  return defineConfig({
    test: {
      env: shared.env,
      // For the run as a whole: the projects below get what it provides.
      globalSetup: ['test/support/global-setup.ts'],
      reporters: ['default', './test/support/summary-reporter.ts'],
      coverage: { include: ['src/**', 'connector/**'] },
      sequence: { sequencer: LongestFirst },
      projects: [
        // Whole services, databases and programs: each file has its own process.
        {
          test: { ...first, name: 'apart', include, exclude: [...together, ...alone, ...exclude] },
        },
        {
          test: {
            ...first,
            name: 'together',
            include: together,
            exclude: [...alone, ...exclude],
            isolate: false,
          },
        },
        {
          test: {
            ...shared,
            name: 'alone',
            include: alone,
            exclude,
            maxWorkers: 1,
            // For the cases of a file that are marked as concurrent: test/faults/noisy.long.test.ts.
            maxConcurrency: 3,
            sequence: { groupOrder: 1 },
          },
        },
      ],
    },
  });
}

export default configFor({
  include: ['test/**/*.test.ts'],
  exclude: [longFiles],
  together,
  alone,
  part: 'short',
});
