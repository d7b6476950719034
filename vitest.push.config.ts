import { listProgramTests } from './test/support/starts-programs.ts';
import { alone, configFor, longFiles, together } from './vitest.config.ts';

/** The rule below would exclude these, but they run all the same: no other test checks what is promised to devices. */
const kept = ['test/faults/faults.test.ts', 'test/connector/{hostile,memory,overload}.test.ts'];

/**
 * The tests of a push (`npm test`): those that start no service, database server or browser of their own and do not
 * load the machine, on PostgreSQL. `npm run test:all` runs the rest.
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
