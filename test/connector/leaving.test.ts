import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { debianPython } from '../support/python.ts';
import { startWorld, type World } from './harness.ts';

const program = fileURLToPath(new URL('leaving.py', import.meta.url));

let world: World;
afterEach(() => world.close());

// Each acknowledgement that reaches a socket that is closed, or is closed with it, is answered with a reset.
test.skipIf(!existsSync(debianPython)).each([4, 5])(
  'all that is published before a DISCONNECT is stored, also of a program that reads no acknowledgement (level %i)',
  async (level) => {
    const rate = 1_000_000;
    world = await startWorld({
      limits: { messagesPerSecond: rate, messagesBurst: rate, measurementsPerSecond: rate },
    });
    const { port, device, store } = world;
    const args = [program, port, device.uuid, device.token, level, 500].map(String);
    const [status] = (await once(spawn(debianPython, args), 'exit')) as [number];
    expect(status).toBe(0);
    await expect.poll(() => world.counted).toContain('disconnected peer');
    await expect.poll(() => store.stored.length).toBe(500);
  },
);
