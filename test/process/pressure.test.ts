import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

/** A separate process with a small heap. */
let child: ChildProcess;
let said: string[];

beforeEach(() => {
  const script = fileURLToPath(new URL('short-of-memory.ts', import.meta.url));
  child = fork(script, [], { execArgv: ['--max-old-space-size=128'], stdio: 'inherit' });
  said = [];
  child.on('message', (message) => {
    if (typeof message === 'string') said.push(message);
  });
});
afterEach(async () => {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
});

type Answer = { isShort: boolean; part: number };

async function ask(): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const onMessage = (message: unknown) => {
    if (typeof message === 'object') resolve(message as Answer);
  };
  child.on('message', onMessage);
  child.send('ask');
  const answer = await promise;
  child.off('message', onMessage);
  return answer;
}

const patience = { timeout: 60_000 };

test('memory is short while too much is in use, until clearly less is', async () => {
  child.send('hold');
  await expect.poll(() => said, patience).toEqual(['short']);
  child.send('some');
  await expect.poll(async () => (await ask()).part, patience).toBeLessThan(0.8);
  expect(await ask()).toMatchObject({ isShort: true });
  child.send('free');
  await expect.poll(() => said, patience).toEqual(['short', 'enough']);
  expect(await ask()).toMatchObject({ isShort: false });
});

test('caches are freed first, and garbage is collected', async () => {
  child.send('garbage');
  // V8 may collect part of it by itself, and then no more is needed.
  await expect.poll(async () => (await ask()).part, patience).toBeLessThan(0.8);
  expect(said).toEqual([]);
  child.send('cache');
  await expect.poll(() => said, patience).toEqual(['relieved']);
  await expect.poll(async () => (await ask()).part, patience).toBeLessThan(0.5);
  expect(said).toEqual(['relieved']);
});
