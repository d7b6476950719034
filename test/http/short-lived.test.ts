import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startFlags } from '../support/start-command.ts';

const script = fileURLToPath(new URL('grow-old.ts', import.meta.url));

test('a finished request becomes garbage at once, and never moves to the old space', async () => {
  const child = fork(script, { execArgv: startFlags() });
  const exited = once(child, 'exit');
  const told = once(child, 'message') as Promise<[{ bytesEach: number }]>;
  const [message] = await Promise.race([told, exited.then(() => [null])]);
  expect(message?.bytesEach).toBeLessThan(1_000);
  expect(await exited).toEqual([0, null]);
});
