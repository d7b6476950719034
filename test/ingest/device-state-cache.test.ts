import { expect, test } from 'vitest';
import { compileProfile } from '../../src/engine/compile.ts';
import { CowArray } from '../../src/engine/last-seen.ts';
import type { DeviceState } from '../../src/ingest/rules/model.ts';
import { type DeviceQueue, DeviceQueues } from '../../src/ingest/queue.ts';
import { ContextCache } from '../../src/ingest/device-state.ts';
import { countingPurpose } from './harness.ts';

const jsonBytes = 10_000;
const contentBytes = 2_000 + 13 * jsonBytes;
const deviceBytes = 1_500;

/** A device of the account that has just been read, with its own content. */
function read(remembered: ContextCache, accountId: number, deviceId: number, contentId = deviceId) {
  const known = remembered.findContent(accountId, contentId);
  const { pId: _none, ...layout } = compileProfile('', [countingPurpose(1)]);
  if (!known) remembered.addContent(accountId, contentId, layout, jsonBytes);
  const profile = { pId: `p${deviceId}`, ...(known ?? layout) };
  const device = { deviceId, accountId, uuid: `d${deviceId}` };
  const deviceState: DeviceState = {
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
    evidenceLog: null,
    dueTs: null,
    earliestDue: null,
    pendingTs: null,
    watched: new Map(),
    seen: CowArray.of([]),
    clocks: null,
    remarked: null,
    given: { basis: '', isNoted: true, isKept: false },
    lateHour: null,
    arrival: null,
    waitingSenses: null,
    recentRejections: null,
  };
  const queue: DeviceQueue = { ...new DeviceQueues(1).queueOf(device), deviceState };
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

/** How many bytes one account needs to keep this many devices with contents of their own. */
const roomFor = (devices: number) => 8 * devices * (contentBytes + deviceBytes);

test('beyond its share an account forgets its least recently used devices', () => {
  const each = contentBytes + deviceBytes;
  const remembered = new ContextCache(roomFor(10), Date.now);
  const queues = Array.from({ length: 10 }, (_, deviceId) => read(remembered, 1, deviceId));
  const [first, second] = queues as [DeviceQueue, DeviceQueue];
  expect(queues.every(({ deviceState }) => deviceState !== null)).toBe(true);
  remembered.note(first);
  queues.push(read(remembered, 1, 10));
  expect(remembered.bytes).toBeLessThanOrEqual(10 * each);
  expect(first.deviceState).not.toBeNull();
  expect(second.deviceState).toBeNull();
  expect(remembered.findContent(1, 1)).toBeUndefined();
});

test('many plain devices of one account stay, however large their sum is', () => {
  const remembered = new ContextCache(8 * 1_500 * 2_000, Date.now);
  const known = Array.from({ length: 4_000 }, (_, deviceId) => read(remembered, 1, deviceId, 1));
  expect(known.every(({ deviceState }) => deviceState !== null)).toBe(true);
});

test('devices of a batch under way are spared', () => {
  const remembered = new ContextCache(roomFor(2), Date.now);
  const busy = read(remembered, 1, 0);
  busy.busy = true;
  const others = [1, 2, 3, 4].map((deviceId) => read(remembered, 1, deviceId));
  expect(busy.deviceState).not.toBeNull();
  expect(others.filter(({ deviceState }) => deviceState === null)).not.toHaveLength(0);
  remembered.shrink();
  expect(busy.deviceState).not.toBeNull();
  expect(remembered.bytes).toBe(contentBytes + deviceBytes);
});

test('accounts within their shares together use no more than there is', () => {
  const remembered = new ContextCache(roomFor(10), Date.now);
  for (let deviceId = 0; deviceId < 300; deviceId += 1)
    read(remembered, 1 + (deviceId % 30), deviceId);
  expect(remembered.bytes).toBeLessThanOrEqual(roomFor(10));
  expect(remembered.bytes).toBeGreaterThan(roomFor(8));
});

test('a large account forgets its own devices, not those of others', () => {
  const remembered = new ContextCache(20 * (contentBytes + deviceBytes), Date.now);
  const quiet = [1, 2, 3].map((accountId) => read(remembered, accountId, 1_000 + accountId));
  for (let deviceId = 0; deviceId < 500; deviceId += 1) read(remembered, 9, deviceId);
  expect(quiet.every(({ deviceState }) => deviceState !== null)).toBe(true);
  expect(remembered.bytes).toBeLessThanOrEqual(20 * (contentBytes + deviceBytes));
});

test('a device that is read again counts once', () => {
  const remembered = new ContextCache(100_000_000, Date.now);
  read(remembered, 1, 1);
  read(remembered, 1, 1);
  expect(remembered.bytes).toBe(contentBytes + deviceBytes);
});
