import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import { parseUplink } from '../../connector/device/receive.ts';
import { downTopics, upTopics } from '../../src/contract/uplink.ts';

type Document = {
  channels: Record<string, { address: string }>;
  components: {
    messages: Record<string, { examples: { payload: unknown }[] }>;
    schemas: Record<string, unknown>;
  };
};
const document = asyncApiDocument() as Document;

test('asyncapi.yaml is what `npm run asyncapi` would write', async () => {
  const text = await readFile(new URL('../../asyncapi.yaml', import.meta.url), 'utf8');
  expect(load(text)).toEqual(JSON.parse(JSON.stringify(document)));
});

test('it has every topic of the contract', () => {
  const addresses = Object.values(document.channels).map(({ address }) => address);
  const up = upTopics.map((topic) => `devices/{uuid}/up/${topic}`);
  const down = downTopics.map((topic) => `devices/{uuid}/down/${topic}`);
  expect(addresses).toEqual([...up, ...down]);
});

describe('the examples of what devices send', () => {
  test.each(upTopics)('are accepted: %s', (topic) => {
    const name = `Up${topic.slice(0, 1).toUpperCase()}${topic.slice(1)}`;
    const examples = document.components.messages[name]?.examples ?? [];
    expect(examples.length).toBeGreaterThan(0);
    for (const { payload } of examples) {
      const bytes = Buffer.from(JSON.stringify(payload));
      const { content, rejections } = parseUplink(`up/${topic}`, 'up/', bytes, 0, 10);
      expect(rejections).toEqual([]);
      expect(content.kind).not.toBe('none');
    }
  });
});
