import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { observeConnector } from '../../src/metrics/observe.ts';

it('counts the messages of devices, however often it is asked', async () => {
  const registry = new Registry();
  const { message, acknowledged } = observeConnector(registry);
  for (const kind of ['measurements', 'state', 'measurements']) message(kind);
  acknowledged(0.003);
  const counted = async () =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => /^mqtt_(messages_total|acknowledgement_seconds_(sum|count))/.test(line));
  const first = [
    'mqtt_messages_total{kind="measurements"} 2',
    'mqtt_messages_total{kind="state"} 1',
    'mqtt_acknowledgement_seconds_sum 0.003',
    'mqtt_acknowledgement_seconds_count 1',
  ];
  expect(await counted()).toEqual(first);
  expect(await counted()).toEqual(first);
  message('state');
  expect(await counted()).toContain('mqtt_messages_total{kind="state"} 2');
});
