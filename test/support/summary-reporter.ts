import type { Reporter, TestModule } from 'vitest/node';

/** Plain lines at the end, for people and for programs that read logs. The last one has the counts. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    let passed = 0;
    let failed = errors.length;
    let skipped = 0;
    const again: string[] = [];
    for (const module of modules) {
      if (module.state() === 'failed' && [...module.children.allTests()].length === 0) failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped += 1;
        if (test.diagnostic()?.flaky) again.push(`${module.relativeModuleId}: ${test.fullName}`);
      }
    }
    for (const name of again) console.log(`Passed at the second try only: ${name}`);
    console.log(`${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
  }
}
