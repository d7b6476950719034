import mqtt, { type MqttClient } from 'mqtt';
import { ErrorMessage, ReceivedProfile, type RegistrationAnswer } from './answers.ts';
import type { Ledger } from './compare.ts';
import { readingsAt } from './curve.ts';
import type { Tally } from './tally.ts';

/** A connected device. It accepts every profile it is handed and counts what it is told. */
export type SimulatedDevice = {
  readonly uuid: string;
  readonly ledger: Ledger;
  /** Resolves when the service acknowledged that the device accepted its first profile. */
  readonly accepted: Promise<void>;
  /** Messages that wait for their acknowledgement. */
  readonly waiting: () => number;
  /** Publishes the next reading of every sense in one message. */
  publish(): void;
  disconnect(): Promise<void>;
};

export type DeviceOptions = {
  index: number;
  registration: RegistrationAnswer;
  insecure: boolean;
  tally: Tally;
};

const connectTimeoutMs = 30_000;

/** Connects with the device's own credentials and listens to all its topics. Throws when not let in. */
export async function connectDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, tally, index } = options;
  const uuid = registration.deviceAuthUuid;
  const accepted = Promise.withResolvers<void>();
  const client = await mqtt.connectAsync(
    addressOf(registration),
    {
      username: uuid,
      password: registration.deviceAuthToken,
      clientId: `simulator-${index + 1}`,
      // The service speaks MQTT 3.1.1.
      protocolVersion: 4,
      connectTimeout: connectTimeoutMs,
      rejectUnauthorized: !options.insecure,
    },
    false,
  );
  // It connects again by itself, and sends again what was not acknowledged.
  client.on('error', () => undefined);
  client.on('reconnect', () => (tally.reconnects += 1));
  client.on('message', (topic, payload) => hear(topic, payload.toString('utf8')));
  await client.subscribeAsync(`devices/${uuid}/down/#`, { qos: 1 });

  function hear(topic: string, text: string): void {
    if (topic.endsWith('/display')) tally.events += 1;
    if (topic.endsWith('/errors')) {
      tally.refused += 1;
      tally.firstRefusal ??= ErrorMessage.parse(JSON.parse(text)).message;
    }
    if (topic.endsWith('/profile')) {
      const { pId } = ReceivedProfile.parse(JSON.parse(text));
      const answer = JSON.stringify({ pId, state: 'current', engine: 'service' });
      client.publish(`devices/${uuid}/up/profile`, answer, { qos: 1 }, (error) => {
        if (!error) accepted.resolve();
      });
    }
  }

  const publisher = createPublisher(client, uuid, index, tally);
  return {
    uuid,
    accepted: accepted.promise,
    ...publisher,
    disconnect: () => client.endAsync(true),
  };
}

function createPublisher(client: MqttClient, uuid: string, index: number, tally: Tally) {
  const ledger: Ledger = { sent: [], acknowledged: [] };
  let n = 0;
  let lastTs = 0;
  let waiting = 0;
  return {
    ledger,
    waiting: () => waiting,
    publish() {
      // Each reading has a moment of its own, so that none can pass for another one.
      const ts = (lastTs = Math.max(Date.now(), lastTs + 1));
      const readings = readingsAt(index, n).map((reading) => ({ ...reading, ts }));
      n += 1;
      waiting += 1;
      tally.published += 1;
      ledger.sent.push(...readings);
      const startedMs = performance.now();
      const topic = `devices/${uuid}/up/measurements`;
      client.publish(topic, JSON.stringify(readings), { qos: 1 }, (error) => {
        waiting -= 1;
        if (error) return;
        const tookUs = Math.round((performance.now() - startedMs) * 1_000);
        tally.acknowledged += 1;
        tally.acknowledgementUs.record(Math.max(1, tookUs));
        ledger.acknowledged.push(...readings);
      });
    },
  };
}

/** The connector's address from the answer to the registration; `/mqtt` is where WebSocket is served. */
function addressOf({ protocol, host, port }: RegistrationAnswer): string {
  const scheme = protocol.toLowerCase();
  const path = scheme.startsWith('ws') ? '/mqtt' : '';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}
