import { expect, test } from 'vitest';
import { decodeBusMessage } from '../../src/bus/redis.ts';
import { downTopics } from '../../src/contract/uplink.ts';

test.each(downTopics)('a message for down/%s reaches the process of its device', (topic) => {
  const message = { uuid: 'd', message: { topic, payload: { ts: 5 } } };
  const text = JSON.stringify({ from: 'p', channel: 'down', message });
  expect(decodeBusMessage(text)).toEqual({ from: 'p', message: { channel: 'down', message } });
});

test('ignores messages of another version on unknown topics', () => {
  const message = { uuid: 'd', message: { topic: 'weather', payload: {} } };
  const text = JSON.stringify({ from: 'p', channel: 'down', message });
  expect(decodeBusMessage(text)).toBeNull();
});
