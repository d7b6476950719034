import { describe, expect, test } from 'vitest';
import { findMatchedTopics, findPublisher, upTopicNames } from '../../src/contract/uplink.ts';

const prefix = 'devices/d/down/';
const all = ['profile', 'configuration', 'state', 'display', 'errors', 'time', 'command'];

describe('the topics that a filter matches', () => {
  test.each([
    ['#', all],
    ['+', all],
    ['+/#', all],
    ['profile', ['profile']],
    // A credential, which is sent only if its topic is named.
    ['token', ['token']],
    ['token/#', ['token']],
    ['profile/#', ['profile']],
    ['profile/+', []],
    ['profile/', []],
    ['+/+', []],
    ['other', []],
    ['', []],
    ['__proto__', []],
  ])('devices/d/down/%s', (filter, topics) => {
    expect(findMatchedTopics(prefix + filter, prefix)).toEqual(topics);
  });

  test.each([
    '#',
    'devices/d',
    'devices/d/down',
    'devices/+/down/#',
    'devices/d/up/#',
    'Devices/d/down/#',
  ])('%s covers more than its own topics', (filter) =>
    expect(findMatchedTopics(filter, prefix)).toBeNull(),
  );
});

test('an uplink topic is recognised by its name alone', () => {
  expect(upTopicNames.has('state')).toBe(true);
  for (const name of ['', 'state/', 'State', 'constructor', 'state/x'])
    expect(upTopicNames.has(name)).toBe(false);
});

test('the device that published is read from the topic', () => {
  expect(findPublisher('devices/d/up/state')).toBe('d');
  expect(findPublisher('devices/d/up/a/b/c')).toBe('d');
  for (const topic of [
    'devices/d/down/state',
    'devices//up/state',
    'x/d/up/state',
    'devices/d/up',
    '',
  ])
    expect(findPublisher(topic)).toBeNull();
});
