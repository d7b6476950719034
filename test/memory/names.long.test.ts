import { test } from 'vitest';
import { listLongNames } from './long-names.ts';

test('100 devices with names of 1 MB in a quarter of the heap', async () => {
  await listLongNames({ devices: 100, nameBytes: 1_000_000, heapMiB: 128 });
});

test('600 devices with names of 1 MB, six times at once', { timeout: 15 * 60_000 }, async () => {
  await listLongNames({ devices: 600, nameBytes: 1_000_000, heapMiB: 512 });
});
