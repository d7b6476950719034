import { listProgramTests } from './test/support/starts-programs.ts';
import { alone, configFor, longFiles, together } from './vitest.config.ts';

/** The rule below excludes these, but they run all the same: only they show what is promised to devices. */
const kept = ['test/faults/faults.test.ts', 'test/connector/{hostile,memory,overload}.test.ts'];

/**
 * What a push runs (`npm test`): tests on PostgreSQL that start no service, database server or browser of their own
 * and put no load on the machine. `npm run test:all` runs the rest.
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
