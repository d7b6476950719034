import { listProgramTests } from './test/support/starts-programs.ts';
import { alone, configFor, longFiles, together } from './vitest.config.ts';

/** Left out by the rule below, and run all the same: what is promised to devices is seen by them alone. */
const kept = ['test/faults/faults.test.ts', 'test/connector/{hostile,memory,overload}.test.ts'];

/**
 * What a push runs (`npm test`): what starts no service, database server or browser of its own and
 * does not load the machine, on PostgreSQL. `npm run test:all` has the rest.
 */
export default configFor({
  include: ['test/**/*.test.ts'],
  exclude: [
    longFiles,
    ...[...listProgramTests(import.meta.dirname), ...alone].filter((file) => !kept.includes(file)),
  ],
  together,
  alone: kept.filter((file) => alone.includes(file)),
  part: 'push',
});
