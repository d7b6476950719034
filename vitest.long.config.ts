import { configFor, long } from './vitest.config.ts';

/** What takes long, and is run after `npm test`: `npm run test:long`, or `.ci/run` for both. */
export default configFor({
  include: [long],
  exclude: [],
  together: [],
  alone: [
    'test/{bench,faults}/**/*.long.test.ts',
    'test/cluster/{bridge-passing-on,mosquitto,rolling-restart}.long.test.ts',
    'test/process/install/fresh.long.test.ts',
  ],
  part: 'long',
});
