import type { MqttClient } from 'mqtt';
import { createPublish, refusalCodeOf } from './mqtt-js.ts';
import type { BridgeStatus } from './status.ts';

/** MQTT 5 section 2.4: no matching subscribers. */
const noMatchingSubscribers = 16;
/** Unacknowledged messages at most, also where the broker allows more. */
const maxInFlight = 200;

type Message = {
  topic: string;
  payload: Buffer;
  resolve: () => void;
  reject: (error: Error) => void;
};

/**
 * Publishes to the broker, never more at once than it takes: the client does not count, and a broker
 * ends a connection that exceeds its receive maximum (MQTT 5 section 3.3.4).
 */
export function createBrokerPublisher(
  client: MqttClient,
  status: Pick<BridgeStatus, 'messageOut' | 'refused'>,
) {
  const publishOnce = createPublish(client);
  const waiting: Message[] = [];
  const sent = new Set<Message>();

  /** Half of the receive maximum: after a reconnect the client resends in-flight messages by itself. */
  const room = () =>
    Math.max(1, Math.min(maxInFlight, (client.serverProperties?.receiveMaximum ?? 65_535) >> 1));

  function advance(): void {
    while (client.connected && sent.size < room()) {
      const message = waiting.shift();
      if (!message) return;
      send(message);
    }
  }

  function send(message: Message): void {
    sent.add(message);
    publishOnce(message.topic, message.payload, (error, reasonCode) => {
      sent.delete(message);
      if (error) {
        // Without a reason code the connection was lost.
        if (refusalCodeOf(error) !== null) status.refused('not-published');
        message.reject(error);
      } else {
        status.messageOut();
        if (reasonCode !== noMatchingSubscribers) message.resolve();
        else message.reject(new Error('nobody listens'));
      }
      advance();
    });
  }

  client.on('close', () => {
    const error = new Error('the connection to the broker ended');
    for (const { reject } of [...sent, ...waiting.splice(0)]) reject(error);
    sent.clear();
  });

  /** Resolves once the broker has it for a subscriber; rejects where there is none, or no connection. */
  return function publish(topic: string, payload: Buffer): Promise<void> {
    if (!client.connected) return Promise.reject(new Error('the broker is away'));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.push({ topic, payload, resolve, reject });
    advance();
    return promise;
  };
}
