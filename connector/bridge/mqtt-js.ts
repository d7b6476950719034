import type { Duplex } from 'node:stream';
import type { IPublishPacket, MqttClient } from 'mqtt';

/** Tells the client not to acknowledge this message. */
const later = new Error('acknowledged after the commit');

/**
 * Takes the client's messages one after the other; the next one is read when `next` is called. By itself the client
 * reads a message, waits, acknowledges it and reads the next. With a commit in between that would be one message a
 * transaction, and nothing else, not even a ping's answer, would be read meanwhile. So it gets an error, upon which it
 * writes no PUBACK and does nothing else. `writePuback` acknowledges instead.
 */
export function takeUnacknowledged(
  client: MqttClient,
  onMessage: (packet: IPublishPacket, stream: Duplex, next: () => void) => void,
): void {
  client.handleMessage = (packet, callback) =>
    onMessage(packet, client.stream, () => callback(packet.qos > 0 ? later : undefined));
}

/** Writes a PUBACK without the client. MQTT 5 section 3.4: no reason code means success. */
export function writePuback(stream: Duplex, messageId: number): void {
  if (stream.destroyed) return;
  stream.write(Buffer.from([0x40, 2, (messageId >> 8) & 0xff, messageId & 0xff]));
}

/** An ended client would take a stream that closes late for a lost connection, and reconnect. */
export function stopReconnecting(client: MqttClient): void {
  client.options.reconnectPeriod = 0;
}

/** The reason code of the broker's answer; 0 for plain success. */
type PublishAnswered = (error: Error | null, reasonCode: number) => void;

/**
 * Publishes at QoS 1 and passes on the broker's reason code. On success the client's callback gets the PUBLISH, not the
 * PUBACK, so the code comes from the last packet received before it.
 */
export function createPublish(client: MqttClient) {
  let last = { messageId: 0, reasonCode: 0 };
  client.on('packetreceive', (packet) => {
    if (packet.cmd !== 'puback') return;
    last = { messageId: packet.messageId ?? 0, reasonCode: packet.reasonCode ?? 0 };
  });
  return (topic: string, payload: Buffer, onAnswer: PublishAnswered): void => {
    client.publish(topic, payload, { qos: 1 }, (error, packet) =>
      onAnswer(error ?? null, packet?.messageId === last.messageId ? last.reasonCode : 0),
    );
  };
}

/** The reason code of the broker's refusal; null if the error is something else. */
export function refusalCodeOf(error: Error): number | null {
  return 'code' in error && typeof error.code === 'number' ? error.code : null;
}

/** The broker did not answer in time: the client's error then has no code. */
export function isUnanswered(error: Error): boolean {
  return /^(connack timeout|keepalive timeout)$/i.test(error.message);
}
