import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import defaults from '../../config/default.ts';
import { limitsFor, raisedLimits } from '../../bench/service.ts';

test('raises only limits that a tree knows', async () => {
  const tree = mkdtempSync(join(tmpdir(), 'sensorium-limits-'));
  try {
    mkdirSync(join(tree, 'config'));
    const text = 'export default { mqtt: { messagesPerSecond: 1, maxTopicLevels: 8 }, http: {} };';
    writeFileSync(join(tree, 'config/default.ts'), text);
    const { messagesPerSecond } = raisedLimits.mqtt;
    expect(await limitsFor(tree)).toEqual({ mqtt: { messagesPerSecond } });
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
});

test('raises the rates of a device in this tree', async () => {
  const { mqtt } = await limitsFor(new URL('../..', import.meta.url).pathname);
  expect(mqtt).toEqual(raisedLimits.mqtt);
  expect(mqtt?.['messagesPerSecond']).toBeGreaterThan(defaults.mqtt?.messagesPerSecond ?? 0);
});
