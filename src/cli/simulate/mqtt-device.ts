import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { NewToken, type RegistrationAnswer } from './answers.ts';
import { createBehaviour, type DeviceOptions, type SimulatedDevice } from './device.ts';

const connectTimeoutMs = 30_000;

/** Connects with the device's own credentials and listens to all its topics. Throws when not let in. */
export async function connectMqttDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, protocol, tally, index } = options;
  const uuid = registration.deviceAuthUuid;
  let isOver = false;
  let client = await connect(registration.deviceAuthToken);
  let moved: Promise<void> = Promise.resolve();
  const send = async (topic: string, payload: string): Promise<void> => {
    await moved;
    await client.publishAsync(`devices/${uuid}/up/${topic}`, payload, { qos: 1 });
  };
  const { hear, ...behaviour } = createBehaviour(options, send);
  await listen();

  function connect(password: string): Promise<MqttClient> {
    const how: IClientOptions = {
      username: uuid,
      password,
      clientId: `simulator-${index + 1}`,
      protocolVersion: protocol === 'mqtt5' ? 5 : 4,
      connectTimeout: connectTimeoutMs,
      rejectUnauthorized: !options.insecure,
    };
    return mqtt.connectAsync(addressOf(registration), how, false);
  }

  async function listen(): Promise<void> {
    const listening = client;
    // One that waits for its SUBACK would connect again and again.
    const end = () => void listening.end(true);
    options.signal.addEventListener('abort', end, { once: true });
    if (options.signal.aborted) end();
    // It connects again by itself, and sends again what was not acknowledged.
    listening.on('error', () => undefined);
    listening.on('reconnect', () => (tally.reconnects += 1));
    listening.on('message', (topic, payload) => {
      const name = topic.slice(topic.lastIndexOf('/') + 1);
      const message: unknown = JSON.parse(payload.toString('utf8'));
      if (name !== 'token') return hear(name, message);
      const { deviceAuthToken } = NewToken.parse(message);
      moved = logInWith(deviceAuthToken).catch((error: unknown) => {
        tally.firstRefusal ??= String(error);
      });
    });
    const topics = [`devices/${uuid}/down/#`, `devices/${uuid}/down/token`];
    await listening.subscribeAsync(topics, { qos: 1 });
  }

  /** Once all that it has sent is acknowledged. */
  async function logInWith(token: string): Promise<void> {
    await client.endAsync();
    if (isOver) return;
    client = await connect(token);
    await listen();
  }

  const disconnect = async (): Promise<void> => {
    isOver = true;
    await moved;
    await client.endAsync(true);
  };
  return { uuid, ...behaviour, disconnect };
}

/** The connector's address from the answer to the registration; `/mqtt` is where WebSocket is served. */
function addressOf({ protocol, host, port }: RegistrationAnswer): string {
  const scheme = protocol.toLowerCase();
  const path = scheme.startsWith('ws') ? '/mqtt' : '';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}
