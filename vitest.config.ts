import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    reporters: ['default', './test/harness/summary-reporter.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    coverage: { include: ['src/**', 'connector/**'] },
  },
});
