import { packet, varint } from './frames.ts';
import { property } from './v5.ts';

/** What a CONNACK of MQTT 5 says of this connection. */
export type Welcome = {
  /** The largest packet that it may send; larger than others may only measurements be. */
  maxPacketBytes: number;
  receiveMaximum: number;
  /** Set where the client gave no identifier. [MQTT-3.2.2-16] */
  assignedClientId: string | null;
  /** Set where it is another one than the client asked for. [MQTT-3.2.2-21] */
  keepaliveSeconds: number | null;
};

const number = (identifier: number, value: number, bytes: 1 | 2 | 4): Buffer => {
  const field = Buffer.alloc(1 + bytes, identifier);
  field.writeUIntBE(value, 1, bytes);
  return field;
};

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** The answer to a CONNECT that is let in, section 3.2: a session that is new and ends with its connection. */
export function connack(welcome: Welcome): Buffer {
  const properties = [
    number(property.sessionExpiry, 0, 4),
    number(property.receiveMaximum, Math.min(welcome.receiveMaximum, 65_535), 2),
    number(property.retainAvailable, 0, 1),
    number(property.maximumPacketSize, welcome.maxPacketBytes, 4),
    number(property.topicAliasMaximum, 0, 2),
    number(property.subscriptionIdentifiersAvailable, 0, 1),
    number(property.sharedSubscriptionAvailable, 0, 1),
  ];
  if (welcome.assignedClientId !== null)
    properties.push(
      Buffer.from([property.assignedClientIdentifier]),
      text(welcome.assignedClientId),
    );
  if (welcome.keepaliveSeconds !== null)
    properties.push(number(property.serverKeepalive, welcome.keepaliveSeconds, 2));
  const field = Buffer.concat(properties);
  return packet(0x20, [Buffer.from([0, 0]), varint(field.length), field]);
}

/** The answer to one that is not. */
export const connackRefusal = (code: number): Buffer => Buffer.from([0x20, 3, 0, code, 0]);

/** Section 3.14. */
export const disconnect = (code: number): Buffer => Buffer.from([0xe0, 2, code, 0]);

/** What is said beside a reason code. */
export type Remarks = { reasonString: string | null; rejected: number };

/** A PUBACK or PUBREC, sections 3.4 and 3.5; without remarks it has no properties. */
export function acknowledgement(
  qos: number,
  messageId: number,
  code: number,
  remarks: Remarks | null,
): Buffer {
  const first = qos === 1 ? 0x40 : 0x50;
  const id = Buffer.from([messageId >> 8, messageId & 255]);
  if (!remarks) return packet(first, code === 0 ? [id] : [id, Buffer.from([code])]);
  const properties: Buffer[] = [];
  if (remarks.reasonString !== null)
    properties.push(Buffer.from([property.reasonString]), text(remarks.reasonString));
  properties.push(
    Buffer.from([property.userProperty]),
    text('rejected'),
    text(String(remarks.rejected)),
  );
  const field = Buffer.concat(properties);
  return packet(first, [id, Buffer.from([code]), varint(field.length), field]);
}

export type Published = {
  topic: string;
  qos: 0 | 1;
  messageId: number;
  body: Buffer;
  /** For how long it is of use; null: no limit. */
  expirySeconds: number | null;
};

/** A PUBLISH to a device, section 3.3. */
export function publish({ topic, qos, messageId, body, expirySeconds }: Published): Buffer {
  const id = qos === 0 ? [] : [Buffer.from([messageId >> 8, messageId & 255])];
  const field =
    expirySeconds === null ? noProperties : number(property.messageExpiry, expirySeconds, 4);
  return packet(0x30 | (qos << 1), [text(topic), ...id, varint(field.length), field, body]);
}

const noProperties = Buffer.alloc(0);

/** How long such a packet is, in bytes, without making it. */
export function publishBytes({ topic, qos, body, expirySeconds }: Published): number {
  const properties = 1 + (expirySeconds === null ? 0 : 5);
  const length = 2 + Buffer.byteLength(topic) + (qos === 0 ? 0 : 2) + properties + body.length;
  return 1 + varint(length).length + length;
}
