import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeTemporaryDir } from '../../support/cluster.ts';
import { findProgram } from '../../support/program.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

// What docs/devices.md tells people to copy is run as it stands there.
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

const valuesOf = ({ store }: HttpWorld) =>
  store.stored.flatMap(({ uplink: { content } }) =>
    content.kind === 'measurements' ? content.items.map(({ value }) => value.val) : [],
  );

describe.skipIf(findProgram('curl') === null)('curl', () => {
  test('there are commands to copy', () => expect(commands.length).toBeGreaterThan(1));

  test.each(commands)('%s', async (command) => {
    await run('sh', ['-c', command], { env, timeout: 15_000 });
    expect(world.store.stored).toHaveLength(1);
    expect(world.store.stored[0]?.uplink.rejections).toEqual([]);
  });

  test('the example in shell sends three measurements, and keeps what could not be sent', async () => {
    const file = fileURLToPath(new URL('examples/devices/http-device.sh', root));
    const options = { env, timeout: 30_000, cwd: makeTemporaryDir() };
    const away = { ...options, env: { ...env, DEVICE_HTTP_URL: 'http://127.0.0.1:9' } };
    expect((await run('sh', [file], away)).stdout).not.toContain('stored:');
    const { stdout } = await run('sh', [file], options);
    expect(stdout.match(/stored:/g)).toHaveLength(3);
    expect(valuesOf(world)).toEqual([20, 21, 22, 20, 21, 22]);
  });
});

test.skipIf(findProgram('python3') === null)(
  'the example in Python asks the time and sends three measurements',
  async () => {
    const file = fileURLToPath(new URL('examples/devices/http_device.py', root));
    const { stdout } = await run('python3', [file], { env, timeout: 30_000 });
    expect(stdout.match(/stored:/g)).toHaveLength(3);
    expect(valuesOf(world)).toEqual([20, 21, 22]);
  },
);

test('the example in Node sends three measurements', async () => {
  const file = fileURLToPath(new URL('examples/devices/http-device.mjs', root));
  const { stdout } = await run(process.execPath, [file], { env, timeout: 30_000 });
  expect(stdout.match(/stored:/g)).toHaveLength(3);
  expect(valuesOf(world)).toEqual([20, 21, 22]);
});
