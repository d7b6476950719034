import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProgram } from '../support/program.ts';
import { startWorld, until, type World } from './harness.ts';

// What docs/devices.md tells people to copy is run as it stands there.
const root = new URL('../../', import.meta.url);
const guide = await readFile(new URL('docs/devices.md', root), 'utf8');
const commands = guide.split('\n').filter((line) => line.startsWith('mosquitto_pub '));

let world: World;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  world = await startWorld();
  const { uuid, token } = world.device;
  const { PATH } = process.env;
  const [DEVICE_HOST, DEVICE_PORT] = ['127.0.0.1', String(world.port)];
  const DEVICE_URL = `mqtt://${DEVICE_HOST}:${DEVICE_PORT}`;
  env = { PATH, DEVICE_HOST, DEVICE_PORT, DEVICE_URL, DEVICE_UUID: uuid, DEVICE_TOKEN: token };
});
afterEach(() => world.close());

describe.skipIf(findProgram('mosquitto_pub') === null)('the mosquitto clients', () => {
  test('there are commands to copy', () => expect(commands.length).toBeGreaterThan(1));

  test.each(commands)('%s', async (command) => {
    await promisify(execFile)('sh', ['-c', command], { env, timeout: 15_000 });
    expect(world.store.stored.map(({ uplink }) => uplink.content.kind)).toEqual(['measurements']);
    expect(world.store.stored[0]?.uplink.rejections).toEqual([]);
  });
});

test('the example for Node connects, answers a profile and sends three measurements', async () => {
  world.store.onSubscribed = () => [{ topic: 'profile', payload: { pId: 'p1' }, pId: 'p1' }];
  const file = fileURLToPath(new URL('examples/devices/device.mjs', root));
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: 15_000 });
  expect(stdout.match(/stored:/g)).toHaveLength(3);
  await until(() => world.store.stored.length === 4);
  const kinds = world.store.stored.map(({ uplink }) => uplink.content.kind);
  expect(kinds.filter((kind) => kind === 'measurements')).toHaveLength(3);
  expect(kinds).toContain('profile-answer');
});
