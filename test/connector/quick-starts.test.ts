import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProgram } from '../support/program.ts';
import { startWorld, type World } from './harness.ts';

// Runs the commands of docs/devices.md exactly as people copy them.
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
  env = { PATH, DEVICE_HOST, DEVICE_PORT, DEVICE_UUID: uuid, DEVICE_TOKEN: token };
});
afterEach(() => world.close());

describe.skipIf(findProgram('mosquitto_pub') === null)('the mosquitto clients', () => {
  test('the page has commands to copy', () => expect(commands.length).toBeGreaterThan(1));

  test.each(commands)('%s', async (command) => {
    await promisify(execFile)('sh', ['-c', command], { env, timeout: 60_000 });
    expect(world.store.stored.map(({ uplink }) => uplink.content.kind)).toEqual(['measurements']);
    expect(world.store.stored[0]?.uplink.rejections).toEqual([]);
  });
});
