import { listProgramTests } from './test/support/starts-programs.ts';
import { alone, configFor, longFiles, together } from './vitest.config.ts';

/** Promises to devices that only a program which is killed can break. */
const kept = ['test/faults/faults.test.ts'];

/**
 * What a push runs (`npm test`): everything on PostgreSQL that starts no service, database server or
 * browser of its own. `npm run test:all` has the rest.
 */
export default configFor({
  include: ['test/**/*.test.ts'],
  exclude: [
    longFiles,
    ...listProgramTests(import.meta.dirname).filter((file) => !kept.includes(file)),
  ],
  together,
  alone,
  part: 'push',
});
