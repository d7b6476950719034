import { expect, test } from 'vitest';
import { compileProfile } from '../../src/engine/compile.ts';
import type { DeviceContext } from '../../src/ingest/rules/device-context.ts';
import { newDeviceQueue } from '../../src/ingest/queue/device-queue.ts';
import type { DeviceQueue } from '../../src/ingest/queue/device-queue.ts';
import { Pages } from '../../src/ingest/rules/pages.ts';
import { ContextCache } from '../../src/ingest/store/context-cache.ts';
import { countingPurpose } from './harness.ts';

const jsonBytes = 10_000;
const contentBytes = 2_000 + 13 * jsonBytes;
const deviceBytes = 1_500;

/** A device of the account that has just been read, with a content of its own. */
function read(remembered: ContextCache, accountId: number, deviceId: number, contentId = deviceId) {
  const known = remembered.findContent(accountId, contentId);
  const { pId: _none, ...layout } = compileProfile('', [countingPurpose(1)]);
  if (!known) remembered.addContent(accountId, contentId, layout, jsonBytes);
  const profile = { pId: `p${deviceId}`, ...(known ?? layout) };
  const device = { deviceId, accountId, uuid: `d${deviceId}` };
  const context: DeviceContext = {
    device,
    version: 1,
    senses: new Map(),
    place: { puId: 7, stId: 1 },
    placeTs: 0,
    reported: null,
    answersProfiles: false,
    current: { profile, engine: 'device' },
    pending: null,
    runtime: null,
    watched: new Map(),
    seen: Pages.of([]),
    recentRejections: null,
  };
  const queue: DeviceQueue = { ...newDeviceQueue(device), context };
  remembered.note(queue);
  return queue;
}

test('a content counts once, however many devices have it', () => {
  const remembered = new ContextCache(100_000_000, Date.now);
  for (let deviceId = 0; deviceId < 50; deviceId += 1) read(remembered, 1, deviceId, 9);
  expect(remembered.bytes).toBe(contentBytes + 50 * deviceBytes);
  remembered.shrink();
  expect(remembered.bytes).toBe(0);
  expect(remembered.findContent(1, 9)).toBeUndefined();
});

test('beyond its bytes it forgets the devices that were not used for longest', () => {
  const each = contentBytes + deviceBytes;
  const remembered = new ContextCache(10 * each, Date.now);
  const queues = Array.from({ length: 10 }, (_, deviceId) => read(remembered, 1, deviceId));
  const [first, second] = queues as [DeviceQueue, DeviceQueue];
  remembered.note(first);
  queues.push(read(remembered, 1, 10));
  expect(remembered.bytes).toBeLessThanOrEqual(9 * each);
  expect(first.context).not.toBeNull();
  expect(second.context).toBeNull();
  expect(remembered.findContent(1, 1)).toBeUndefined();
});

test('devices of a batch under way are spared', () => {
  const remembered = new ContextCache(2 * (contentBytes + deviceBytes), Date.now);
  const busy = read(remembered, 1, 0);
  busy.busy = true;
  const others = [1, 2, 3, 4].map((deviceId) => read(remembered, 1, deviceId));
  expect(busy.context).not.toBeNull();
  expect(others.filter(({ context }) => context === null)).not.toHaveLength(0);
  remembered.shrink();
  expect(busy.context).not.toBeNull();
  expect(remembered.bytes).toBe(contentBytes + deviceBytes);
});

test('an account that has much forgets its own, not those of others', () => {
  const remembered = new ContextCache(20 * (contentBytes + deviceBytes), Date.now);
  const quiet = [1, 2, 3].map((accountId) => read(remembered, accountId, 1_000 + accountId));
  for (let deviceId = 0; deviceId < 500; deviceId += 1) read(remembered, 9, deviceId);
  expect(quiet.every(({ context }) => context !== null)).toBe(true);
  expect(remembered.bytes).toBeLessThanOrEqual(20 * (contentBytes + deviceBytes));
});

test('a device that is read again counts once', () => {
  const remembered = new ContextCache(100_000_000, Date.now);
  read(remembered, 1, 1);
  read(remembered, 1, 1);
  expect(remembered.bytes).toBe(contentBytes + deviceBytes);
});
