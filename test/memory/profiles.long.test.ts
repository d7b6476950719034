import { test } from 'vitest';
import { sendToMany } from './many-profiles.ts';

const longestMs = 45 * 60_000;

test('40 profiles of 1 MiB in a heap of 160 MiB', async () => {
  await sendToMany({ devices: 40, profileBytes: 1_048_576, heapMiB: 160 });
});

test('486 profiles of 1 MiB', { timeout: longestMs }, async () => {
  await sendToMany({ devices: 486, profileBytes: 1_048_576, heapMiB: 512 });
});

test('1,000 devices with a profile of 512 KiB each', { timeout: longestMs }, async () => {
  await sendToMany({ devices: 1_000, profileBytes: 524_288, heapMiB: 512 });
});

// 5 GB to store and to read: an hour.
const isFull = process.env['TEST_LONG'] === 'full';
test.runIf(isFull)('10,000 devices with 512 KiB each', { timeout: 4 * longestMs }, async () => {
  await sendToMany({ devices: 10_000, profileBytes: 524_288, heapMiB: 512 });
});
