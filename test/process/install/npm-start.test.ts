import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { readPostmasterFile } from '../../../src/db/embedded/cluster.ts';
import { makeTemporaryDir } from '../../support/cluster.ts';
import { childrenOf, isRunning } from '../../support/processes.ts';
import { findProgram } from '../../support/program.ts';
import { runProgram, type Running } from '../../journeys/process.ts';

const dir = makeTemporaryDir();
const clusterDir = join(dir, 'data', 'postgresql');
const ready = /"Ready\."/;
let npm: Running | undefined;
let servicePid = 0;
afterEach(async () => {
  if (servicePid > 0 && isRunning(servicePid)) process.kill(servicePid, 'SIGTERM');
  npm?.child.kill('SIGTERM');
  await npm?.ended();
});
afterAll(() => rmSync(dir, { recursive: true }));

describe.skipIf(process.platform === 'win32').each(['SIGTERM', 'SIGINT'] as const)(
  '%s to npm start',
  (signal) => {
    it('reaches the service, which drains, and leaves nothing running', async () => {
      const env = { DATA_DIR: join(dir, 'data'), HTTP_PORT: '0', MQTT_PORT: '0' };
      npm = runProgram(findProgram('npm') ?? 'npm', ['start'], { env });
      await npm.printed(ready);
      const children = childrenOf(npm.child.pid ?? 0);
      expect(children).toHaveLength(1);
      [servicePid = 0] = children;
      const server = await readPostmasterFile(clusterDir);
      expect(isRunning(server?.pid ?? 0)).toBe(true);

      npm.child.kill(signal);
      expect(await npm.ended(), npm.stdout() + npm.stderr()).toBe(0);
      expect(npm.stdout()).toContain(`${signal}: finishing work in progress.`);
      expect(npm.stdout()).toContain('"Stopped."');
      expect(isRunning(servicePid)).toBe(false);
      expect(isRunning(server?.pid ?? 0)).toBe(false);
    });
  },
);
