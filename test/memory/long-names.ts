import { expect } from 'vitest';
import { besideHeapMiB } from './many-profiles.ts';
import { insertDevices, peakMiB, register, startSmall, type World } from './world.ts';

export type LongNames = { devices: number; nameBytes: number; heapMiB: number };

const atOnce = 6;

/**
 * Requests all names, as they may have been stored before there were quotas, several times at once. Each answer is
 * right, or says to try again later. Memory stays within its limit, and probes are answered.
 */
export async function listLongNames({ devices, nameBytes, heapMiB }: LongNames): Promise<void> {
  const service = await startSmall(heapMiB);
  try {
    const world = await register(service, 'names@example.org');
    for (let left = devices; left > 0; left -= 50)
      await insertDevices(world, Math.min(50, left), nameBytes);
    const lists = Array.from({ length: atOnce }, () => readList(world));
    const live = await fetch(`${service.url}/livez`);
    expect(live.status).toBe(200);
    const answers = await Promise.all(lists);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    for (const { status, bytes, ends, retryAfter } of answers) {
      if (status === 200) {
        expect(bytes).toBeGreaterThan(devices * nameBytes);
        expect(bytes).toBeLessThan(devices * (nameBytes + 500));
        expect(ends).toMatch(/"lastSeenTs":null\}\],"timestamp":\d+\}$/);
      } else {
        expect([429, 503]).toContain(status);
        expect(retryAfter).toBeGreaterThan(0);
      }
    }
    expect(service.process.child.exitCode).toBeNull();
    const peak = peakMiB(service);
    if (peak !== null) expect(peak).toBeLessThan(heapMiB + besideHeapMiB);
    console.log(`${devices} names of ${nameBytes} bytes, heap ${heapMiB} MiB: peak ${peak} MiB`);
  } finally {
    await service.close();
  }
}

async function readList({ service, token }: World) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${service.url}/v2/devices`, { headers });
  const { status, body } = response;
  let bytes = 0;
  let ends = '';
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    ends = (ends + Buffer.from(chunk).toString('latin1')).slice(-100);
  }
  return { status, bytes, ends, retryAfter: Number(response.headers.get('retry-after')) };
}
