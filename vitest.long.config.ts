import { configFor, longFiles } from './vitest.config.ts';

/** Tests that take too long for a push: `npm run test:nightly`. */
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
