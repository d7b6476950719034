import { reason } from './reason-codes.ts';
import type { Frame } from './v5-frames.ts';
import { endOfText, hasWildcard, property, readProperties } from './v5-properties.ts';

/** A PUBLISH of MQTT 5, section 3.3; `fault`: the reason code for which its connection ends, or 0. */
export type V5Publish = {
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

function refused(fault: number): V5Publish {
  return { fault, topic: '', qos: 0, messageId: 0, payload: nothing, propertyBytes: 0 };
}

/** Reads a whole PUBLISH. Its properties are checked and have no effect: nobody is sent what a device publishes. */
export function readV5Publish(bytes: Buffer, { flags, start, end }: Frame): V5Publish {
  const qos = (flags >> 1) & 3;
  // [MQTT-3.3.1-2] [MQTT-3.3.1-4]
  if (qos === 3 || (qos === 0 && flags & 8)) return refused(reason.malformed);
  // The CONNACK says that nothing is retained. Section 3.2.2.3.5.
  if (flags & 1) return refused(reason.retainNotSupported);
  const topicEnd = endOfText(bytes, start, end);
  const idEnd = qos === 0 ? topicEnd : topicEnd + 2;
  if (topicEnd < 0 || idEnd >= end) return refused(reason.malformed);
  const messageId =
    qos === 0 ? 0 : ((bytes[topicEnd] as number) << 8) | (bytes[topicEnd + 1] as number);
  // [MQTT-2.2.1-3]
  if (qos > 0 && messageId === 0) return refused(reason.protocolError);
  let from = idEnd + 1;
  if (bytes[idEnd] !== 0) {
    const { fault, end: propertiesEnd, values } = readProperties(bytes, idEnd, end, 'publish');
    if (fault) return refused(fault);
    // The CONNACK says that there are none. [MQTT-3.3.2-9]
    if (values.has(property.topicAlias)) return refused(reason.topicAliasInvalid);
    from = propertiesEnd;
  }
  // Without an alias there is a topic. Section 3.3.2.1.
  if (topicEnd === start + 2) return refused(reason.protocolError);
  // [MQTT-3.3.2-2]
  if (hasWildcard(bytes, start + 2, topicEnd)) return refused(reason.topicInvalid);
  return {
    fault: 0,
    topic: bytes.toString('utf8', start + 2, topicEnd),
    qos,
    messageId,
    payload: bytes.subarray(from, end),
    propertyBytes: from - idEnd - 1,
  };
}
