import { expect, test } from 'vitest';
import { compileProfile } from '../../src/core/compile.ts';
import type { DeviceContext } from '../../src/ingest/context.ts';
import { newLane } from '../../src/ingest/lane.ts';
import type { Lane } from '../../src/ingest/lane.ts';
import { Pages } from '../../src/ingest/pages.ts';
import { Remembered } from '../../src/ingest/remembered.ts';
import { countingPurpose } from './harness.ts';

const jsonBytes = 10_000;
const contentBytes = 2_000 + 13 * jsonBytes;
const deviceBytes = 1_500;

/** A device of the account that has just been read, with a content of its own. */
function read(remembered: Remembered, accountId: number, deviceId: number, contentId = deviceId) {
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
    lately: null,
  };
  const lane: Lane = { ...newLane(device), context };
  remembered.note(lane);
  return lane;
}

test('a content counts once, however many devices have it', () => {
  const remembered = new Remembered(100_000_000);
  for (let deviceId = 0; deviceId < 50; deviceId += 1) read(remembered, 1, deviceId, 9);
  expect(remembered.bytes).toBe(contentBytes + 50 * deviceBytes);
  remembered.shrink();
  expect(remembered.bytes).toBe(0);
  expect(remembered.findContent(1, 9)).toBeUndefined();
});

test('beyond its bytes it forgets the devices that were not used for longest', () => {
  const each = contentBytes + deviceBytes;
  const remembered = new Remembered(10 * each);
  const lanes = Array.from({ length: 10 }, (_, deviceId) => read(remembered, 1, deviceId));
  const [first, second] = lanes as [Lane, Lane];
  remembered.note(first);
  lanes.push(read(remembered, 1, 10));
  expect(remembered.bytes).toBeLessThanOrEqual(9 * each);
  expect(first.context).not.toBeNull();
  expect(second.context).toBeNull();
  expect(remembered.findContent(1, 1)).toBeUndefined();
});

test('devices of a batch under way are spared', () => {
  const remembered = new Remembered(2 * (contentBytes + deviceBytes));
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
  const remembered = new Remembered(20 * (contentBytes + deviceBytes));
  const quiet = [1, 2, 3].map((accountId) => read(remembered, accountId, 1_000 + accountId));
  for (let deviceId = 0; deviceId < 500; deviceId += 1) read(remembered, 9, deviceId);
  expect(quiet.every(({ context }) => context !== null)).toBe(true);
  expect(remembered.bytes).toBeLessThanOrEqual(20 * (contentBytes + deviceBytes));
});

test('a device that is read again counts once', () => {
  const remembered = new Remembered(100_000_000);
  read(remembered, 1, 1);
  read(remembered, 1, 1);
  expect(remembered.bytes).toBe(contentBytes + deviceBytes);
});
