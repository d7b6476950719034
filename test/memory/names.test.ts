import { test } from 'vitest';
import { listLongNames } from './long-names.ts';

test('lists of devices that do not fit into the heap are told', async () => {
  await listLongNames({ devices: 100, nameBytes: 1_000_000, heapMiB: 128 });
});
