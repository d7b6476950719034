import { connectAsync } from 'mqtt';
import type { MqttClient } from 'mqtt';
import { expect } from 'vitest';
import type { Registration } from './app.ts';

/** A device with an ordinary MQTT client. */
export type TestDevice = {
  uuid: string;
  client: MqttClient;
  /** Resolves with the acknowledgement. */
  publish(topic: string, payload: unknown): Promise<unknown>;
  subscribe(topic: string): Promise<void>;
  /** Waits for a message on a topic, and takes it. */
  receive(topic: string): Promise<Record<string, unknown>>;
  received: { topic: string; payload: Record<string, unknown> }[];
  end(): Promise<void>;
};

/** `keepalive` in seconds: longer than the test's leaps of the service's clock, or the device counts as silent. */
export async function connectDevice(
  registration: Registration & { keepalive?: number },
): Promise<TestDevice> {
  const { protocol, host, port, deviceAuthUuid: uuid, deviceAuthToken } = registration;
  const { keepalive = 60 } = registration;
  const path = protocol.startsWith('ws') ? '/mqtt' : '';
  const client = await connectAsync(`${protocol}://${host}:${port}${path}`, {
    username: uuid,
    password: deviceAuthToken,
    reconnectPeriod: 0,
    keepalive,
    // Tests sign their certificates themselves.
    rejectUnauthorized: false,
  });
  const received: TestDevice['received'] = [];
  const prefix = `devices/${uuid}/`;
  client.on('message', (topic, payload) => {
    const text = payload.toString();
    received.push({ topic: topic.slice(prefix.length), payload: JSON.parse(text) as never });
  });
  return {
    uuid,
    client,
    received,
    publish: (topic, payload) =>
      client.publishAsync(prefix + topic, JSON.stringify(payload), { qos: 1 }),
    subscribe: async (topic) => void (await client.subscribeAsync(prefix + topic, { qos: 1 })),
    async receive(topic) {
      const find = () => received.findIndex((message) => message.topic === topic);
      await expect.poll(find, { timeout: 60_000, interval: 10 }).not.toBe(-1);
      return received.splice(find(), 1)[0]?.payload ?? {};
    },
    async end() {
      await client.endAsync();
    },
  };
}
