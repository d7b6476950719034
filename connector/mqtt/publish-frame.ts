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
 * `prefix`. It is the one packet of which there are many, and a general parser costs more than all
 * that is done with it afterwards; whatever is unusual about it is left to that parser. In MQTT 5 properties
 * and RETAIN are unusual.
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
