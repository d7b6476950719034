import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { observeConnector, observeHttpUplink } from '../../src/metrics/observe.ts';

it('counts the messages of devices, however often it is read', async () => {
  const registry = new Registry();
  const { messages, acknowledged } = observeConnector(registry);
  messages.set('measurements', 2);
  messages.set('state', 1);
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
  messages.set('state', 1);
  expect(await counted()).toContain('mqtt_messages_total{kind="state"} 2');
});

it('counts messages over HTTP and over MQTT separately, and reads how many requests wait', async () => {
  const registry = new Registry();
  const mqtt = observeConnector(registry);
  let polls = 2;
  const http = observeHttpUplink(registry, () => ({ polls }));
  mqtt.messages.set('state', 1);
  http.messages.set('measurements', 1);
  http.acknowledged(0.02);
  http.refused('not-authorized');
  polls = 3;
  const counted = (await registry.metrics())
    .split('\n')
    .filter((line) => /^\w+(_total|_polls|_sum|_count)\b/.test(line) && !line.endsWith(' 0'));
  expect(counted).toEqual([
    'mqtt_messages_total{kind="state"} 1',
    'http_uplink_messages_total{kind="measurements"} 1',
    'http_uplink_answer_seconds_sum 0.02',
    'http_uplink_answer_seconds_count 1',
    'http_uplink_refusals_total{reason="not-authorized"} 1',
    'http_uplink_waiting_polls 3',
  ]);
});
