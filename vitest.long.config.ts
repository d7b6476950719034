import { configFor, longFiles } from './vitest.config.ts';

/** What takes long, and is run after `npm test`: `npm run test:long`, or `.ci/run` for both. */
export default configFor({
  include: [longFiles],
  exclude: [],
  together: [],
  alone: [
    'test/bench/*.long.test.ts',
    'test/cluster/rolling-restart.long.test.ts',
    'test/faults/noisy.long.test.ts',
  ],
  part: 'long',
});
