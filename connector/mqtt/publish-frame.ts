import type { Frame } from './frames.ts';
import { reason } from './reason-codes.ts';
import { endOfText, hasWildcard, noProperties, property, readProperties } from './v5.ts';

/** A PUBLISH of QoS 0 or 1, MQTT 3.1.1 and MQTT 5 section 3.3. */
export type PublishFrame = {
  topic: string;
  qos: 0 | 1;
  /** 0 where the QoS is. */
  messageId: number;
  payload: Buffer;
  /** Where the packet after it begins. */
  end: number;
};

/**
 * Reads the packet that begins at `at`; null where it is anything but a whole and plain PUBLISH below
 * `prefix`. It is the one packet of which there are many, and looking at each part of it costs more than all
 * that is done with it afterwards; whatever is unusual about it is left to `readWholePublish`. In MQTT 5
 * properties and RETAIN are unusual.
 */
export function readPublish(
  chunk: Buffer,
  at: number,
  prefix: string,
  isV5: boolean,
): PublishFrame | null {
  // PUBLISH with or without DUP and RETAIN; at QoS 0 DUP must not be set. [MQTT-3.3.1-2]
  const flags = (chunk[at] as number) ^ 0x30;
  const qos = (flags >> 1) & 3;
  if (flags > 0x0f || qos > 1 || (qos === 0 && flags & 8) || (isV5 && flags & 1)) return null;
  let next = at + 1;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = chunk[next++];
    if (byte === undefined || shift > 21) return null;
    length |= (byte & 127) << shift;
    if (byte < 128) break;
  }
  const end = next + length;
  const topicEnd = next + 2 + (((chunk[next] as number) << 8) | (chunk[next + 1] as number));
  const idEnd = qos === 0 ? topicEnd : topicEnd + 2;
  if (end > chunk.length || idEnd > end) return null;
  if (isV5 && (idEnd === end || chunk[idEnd] !== 0)) return null;
  const messageId =
    qos === 0 ? 0 : ((chunk[topicEnd] as number) << 8) | (chunk[topicEnd + 1] as number);
  // [MQTT-2.3.1-1]
  if (qos === 1 && messageId === 0) return null;
  const topic = chunk.toString('utf8', next + 2, topicEnd);
  if (!topic.startsWith(prefix)) return null;
  const payload = chunk.subarray(isV5 ? idEnd + 1 : idEnd, end);
  return { topic, qos: qos as 0 | 1, messageId, payload, end };
}

/** A PUBLISH, section 3.3; `fault`: the reason code for which its connection ends, or 0. */
export type WholePublish = {
  fault: number;
  topic: string;
  qos: number;
  /** 0 where the QoS is. */
  messageId: number;
  payload: Buffer;
  /** What its properties take. */
  propertyBytes: number;
};

const nothing = Buffer.alloc(0);

function refused(fault: number): WholePublish {
  return { fault, topic: '', qos: 0, messageId: 0, payload: nothing, propertyBytes: 0 };
}

/**
 * Reads a whole PUBLISH of either version. Properties are checked and have no effect: nobody is sent what a device
 * publishes.
 */
export function readWholePublish(
  bytes: Buffer,
  { flags, start, end }: Frame,
  isV5: boolean,
): WholePublish {
  const qos = (flags >> 1) & 3;
  // [MQTT-3.3.1-2] [MQTT-3.3.1-4]
  if (qos === 3 || (qos === 0 && flags & 8)) return refused(reason.malformed);
  // The CONNACK of MQTT 5 says that nothing is retained, section 3.2.2.3.5. That of 3.1.1 cannot.
  if (isV5 && flags & 1) return refused(reason.retainNotSupported);
  const topicEnd = endOfText(bytes, start, end);
  const idEnd = qos === 0 ? topicEnd : topicEnd + 2;
  if (topicEnd < 0 || idEnd > end) return refused(reason.malformed);
  const messageId =
    qos === 0 ? 0 : ((bytes[topicEnd] as number) << 8) | (bytes[topicEnd + 1] as number);
  // [MQTT-2.3.1-1], of MQTT 5 [MQTT-2.2.1-3]
  if (qos > 0 && messageId === 0) return refused(reason.protocolError);
  const properties = isV5 ? readProperties(bytes, idEnd, end, 'publish') : noProperties(idEnd);
  if (properties.fault) return refused(properties.fault);
  // The CONNACK says that there are none. [MQTT-3.3.2-9]
  if (properties.values.has(property.topicAlias)) return refused(reason.topicAliasInvalid);
  // [MQTT-4.7.3-1], and of MQTT 5 section 3.3.2.1: without an alias there is a topic.
  if (topicEnd === start + 2) return refused(reason.protocolError);
  // [MQTT-3.3.2-2]
  if (hasWildcard(bytes, start + 2, topicEnd)) return refused(reason.topicInvalid);
  return {
    fault: 0,
    topic: bytes.toString('utf8', start + 2, topicEnd),
    qos,
    messageId,
    payload: bytes.subarray(properties.end, end),
    propertyBytes: Math.max(0, properties.end - idEnd - 1),
  };
}
