import { expect, test } from 'vitest';
import { createLocalBus } from '../../src/bus/bus.ts';
import type { CommandRow } from '../../src/commands/schema.ts';
import { createCommandWaits } from '../../src/commands/wait.ts';

const queued = { state: 'queued' } as CommandRow;
const done = { state: 'done' } as CommandRow;

function start() {
  const bus = createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
  const waits = createCommandWaits({ bus, monotonicClock: () => performance.now() });
  const { signal } = new AbortController();
  let reads = 0;
  const wait = (accountId: number, state: () => CommandRow, of: { signal?: AbortSignal } = {}) =>
    waits.untilEnded(
      { accountId, commandId: 'c', waitMs: 60_000, signal: of.signal ?? signal },
      async () => {
        reads += 1;
        return state();
      },
    );
  return { bus, waits, wait, reads: () => reads };
}

test('a wait reads once, and again after each change, until the command has ended', async () => {
  const { bus, wait, reads } = start();
  let row = queued;
  const waiting = wait(1, () => row);
  await expect.poll(reads).toBe(1);
  bus.publish('command', { accountId: 1, commandId: 'other' });
  bus.publish('command', { accountId: 1, commandId: 'c' });
  await expect.poll(reads).toBe(2);
  row = done;
  bus.publish('command', { accountId: 1, commandId: 'c' });
  expect(await waiting).toBe(done);
  expect(reads()).toBe(3);
});

test('a caller that goes, or a service that stops, ends it', async () => {
  const { wait, reads } = start();
  const leaving = new AbortController();
  const waiting = wait(1, () => queued, { signal: leaving.signal });
  await expect.poll(reads).toBe(1);
  leaving.abort();
  expect(await waiting).toBe(queued);
});

test('beyond 100 of an account, 10 once half of all wait, and 500 of all, the answer comes at once', async () => {
  const { bus, wait, reads } = start();
  let row = queued;
  const waiting = Array.from({ length: 100 }, () => wait(0, () => row));
  expect(await wait(0, () => row)).toBe(queued);
  waiting.push(...Array.from({ length: 150 }, (_, n) => wait(n < 100 ? 1 : 2, () => row)));
  expect(await wait(2, () => row)).toBe(queued);
  waiting.push(...Array.from({ length: 250 }, (_, n) => wait(100 + Math.floor(n / 10), () => row)));
  await expect.poll(reads).toBe(502);
  expect(await wait(77, () => row)).toBe(queued);
  row = done;
  bus.publish('command', { accountId: 0, commandId: 'c' });
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => done));
  row = queued;
  const free = wait(77, () => row);
  await expect.poll(reads).toBe(1_004);
  row = done;
  bus.publish('command', { accountId: 77, commandId: 'c' });
  expect(await free).toBe(done);
});
