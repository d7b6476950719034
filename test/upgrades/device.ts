import { connectAsync } from 'mqtt';
import { until } from './ask.ts';

export type ConnectedDevice = {
  uuid: string;
  /** Resolves with the acknowledgement. Sends text as it is. */
  publish(topic: string, payload: unknown): Promise<void>;
  subscribe(topic: string): Promise<void>;
  /** Waits for a message on a topic, and takes it. */
  receive(topic: string): Promise<Record<string, unknown>>;
  end(): Promise<void>;
};

/** Connects as an ordinary device. Rejects if the token is refused. */
export async function connectAs(
  mqttPort: number,
  { uuid, token }: { uuid: string; token: string },
): Promise<ConnectedDevice> {
  const options = { username: uuid, password: token, reconnectPeriod: 0 };
  const client = await connectAsync(`mqtt://127.0.0.1:${mqttPort}`, options, false);
  const prefix = `devices/${uuid}/`;
  const received: { topic: string; payload: string }[] = [];
  client.on('message', (topic, payload) => {
    received.push({ topic: topic.slice(prefix.length), payload: payload.toString() });
  });
  return {
    uuid,
    async publish(topic, payload) {
      const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
      await client.publishAsync(prefix + topic, text, { qos: 1 });
    },
    async subscribe(topic) {
      await client.subscribeAsync(prefix + topic, { qos: 1 });
    },
    async receive(topic) {
      const message = await until(`a message on ${topic}`, async () => {
        const at = received.findIndex((message) => message.topic === topic);
        return at < 0 ? null : (received.splice(at, 1)[0] ?? null);
      });
      return JSON.parse(message.payload) as Record<string, unknown>;
    },
    end: () => client.endAsync(),
  };
}

/** Whether a token is accepted. */
export async function isLetIn(mqttPort: number, uuid: string, token: string): Promise<boolean> {
  try {
    const device = await connectAs(mqttPort, { uuid, token });
    await device.end();
    return true;
  } catch (error) {
    // [MQTT-3.2.2.3] 5: not authorized. Any other error says nothing about the token.
    if (error instanceof Error && 'code' in error && error.code === 5) return false;
    throw error;
  }
}
