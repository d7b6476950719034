import { test } from 'vitest';
import { sendToMany } from './many-profiles.ts';

test('devices with profiles that do not fit into the heap together are served', async () => {
  await sendToMany({ devices: 40, profileBytes: 1_048_576, heapMiB: 160 });
});
