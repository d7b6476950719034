import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProgram } from '../../support/program.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

// Runs the commands of docs/devices.md exactly as people copy them.
const root = new URL('../../../', import.meta.url);
const guide = await readFile(new URL('docs/devices.md', root), 'utf8');
const commands = guide
  .split('\n')
  .filter((line) => line.startsWith('curl ') && line.includes('/up/'));
const run = promisify(execFile);

let world: HttpWorld;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  world = await startHttpWorld();
  const { uuid, token } = world.device;
  const { PATH } = process.env;
  env = { PATH, DEVICE_HTTP_URL: world.url, DEVICE_UUID: uuid, DEVICE_TOKEN: token };
});
afterEach(() => world.close());

describe.skipIf(findProgram('curl') === null)('curl', () => {
  test('the page has commands to copy', () => expect(commands.length).toBeGreaterThan(1));

  test.each(commands)('%s', async (command) => {
    await run('sh', ['-c', command], { env, timeout: 60_000 });
    expect(world.store.stored).toHaveLength(1);
    expect(world.store.stored[0]?.uplink.rejections).toEqual([]);
  });
});
