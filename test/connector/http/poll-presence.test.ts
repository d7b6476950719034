import { afterEach, expect, test, vi } from 'vitest';
import { createPollPresence } from '../../../connector/http/poll-limits.ts';
import { until } from '../harness.ts';
import { startHttpWorld } from './harness.ts';

afterEach(() => void vi.useRealTimers());

const identity = { deviceId: 1, accountId: 1, uuid: 'a', connectorId: 1 };

function open() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const told: string[] = [];
  const ports = { presence: (_device: unknown, change: string) => void told.push(change) };
  return { told, presence: createPollPresence({ ports, graceMs: 5_000 }) };
}

test('a device that polls again after its answer stays connected; one that does not has left', () => {
  const { told, presence } = open();
  for (let i = 0; i < 3; i += 1) {
    presence.began(identity);
    presence.ended(identity, true);
    vi.advanceTimersByTime(4_000);
  }
  expect(told).toEqual(['connected']);
  vi.advanceTimersByTime(2_000);
  expect(told).toEqual(['connected', 'disconnected']);
});

test('of two polls the last one counts; a device that is cut off has left at once', () => {
  const { told, presence } = open();
  presence.began(identity);
  presence.began(identity);
  presence.ended(identity, false);
  expect(told).toEqual(['connected']);
  presence.ended(identity, false);
  expect(told).toEqual(['connected', 'disconnected']);
  presence.ended(identity, true);
  vi.advanceTimersByTime(10_000);
  expect(told).toHaveLength(2);
});

test('when the service stops, no device stays connected, and no timer remains', () => {
  const { told, presence } = open();
  presence.began(identity);
  presence.ended(identity, true);
  presence.stop();
  expect(told).toEqual(['connected', 'disconnected']);
  expect(vi.getTimerCount()).toBe(0);
});

test('a poll that waits is a connection; one that is answered at once is not', async () => {
  const world = await startHttpWorld();
  const url = `${world.url}/devices/${world.device.uuid}/down`;
  const headers = { authorization: world.basic(world.device) };
  await (await fetch(`${url}?wait=0`, { headers })).text();
  expect(world.store.presence).toEqual([]);
  const leaving = new AbortController();
  const asked = fetch(`${url}?wait=60`, { headers, signal: leaving.signal }).catch(() => 'left');
  await until(() => world.store.presence.length === 1);
  expect(world.store.presence).toEqual(['connected 1']);
  leaving.abort();
  expect(await asked).toBe('left');
  await until(() => world.store.presence.length === 2);
  expect(world.store.presence).toEqual(['connected 1', 'disconnected 1']);
  await world.close();
});
