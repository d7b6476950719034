import { configFor, long } from './vitest.config.ts';

/** What takes long, and is run after `npm test`: `npm run test:long`, or `.ci/run` for both. */
export default configFor({
  include: [long],
  exclude: [],
  together: [],
  alone: ['test/{bench,faults}/**/*.long.test.ts', 'test/cluster/rolling-restart.long.test.ts'],
  part: 'long',
});
