import mqtt from 'mqtt';
import type { RegistrationAnswer } from './answers.ts';
import { createBehaviour, type DeviceOptions, type SimulatedDevice } from './device.ts';

const connectTimeoutMs = 30_000;

/** Connects with the device's own credentials and listens to all its topics. Throws when not let in. */
export async function connectMqttDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, protocol, tally, index } = options;
  const uuid = registration.deviceAuthUuid;
  const client = await mqtt.connectAsync(
    addressOf(registration),
    {
      username: uuid,
      password: registration.deviceAuthToken,
      clientId: `simulator-${index + 1}`,
      protocolVersion: protocol === 'mqtt5' ? 5 : 4,
      connectTimeout: connectTimeoutMs,
      rejectUnauthorized: !options.insecure,
    },
    false,
  );
  // One that waits for its SUBACK would connect again and again.
  const end = () => void client.end(true);
  options.signal.addEventListener('abort', end, { once: true });
  if (options.signal.aborted) end();
  const send = async (topic: string, payload: string): Promise<void> => {
    await client.publishAsync(`devices/${uuid}/up/${topic}`, payload, { qos: 1 });
  };
  const { hear, ...behaviour } = createBehaviour(options, send);
  // It connects again by itself, and sends again what was not acknowledged.
  client.on('error', () => undefined);
  client.on('reconnect', () => (tally.reconnects += 1));
  client.on('message', (topic, payload) => {
    hear(topic.slice(topic.lastIndexOf('/') + 1), JSON.parse(payload.toString('utf8')));
  });
  await client.subscribeAsync(`devices/${uuid}/down/#`, { qos: 1 });
  return { uuid, ...behaviour, disconnect: () => client.endAsync(true) };
}

/** The connector's address from the answer to the registration; `/mqtt` is where WebSocket is served. */
function addressOf({ protocol, host, port }: RegistrationAnswer): string {
  const scheme = protocol.toLowerCase();
  const path = scheme.startsWith('ws') ? '/mqtt' : '';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}
