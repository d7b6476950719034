import type { Rejection } from '../../src/contract/rejection.ts';
import type { Ack, Connection, UnackedPublish } from './connection.ts';
import { reason } from './reason-codes.ts';
import type { V5Session } from './connect-packet.ts';
import { acknowledgement } from './v5-write.ts';

/** Characters of a rejection's message that an acknowledgement tells; the whole of it is on down/errors. */
const maxReasonLength = 200;

/**
 * The PUBACK or PUBREC of a message that is stored, MQTT 5 sections 3.4 and 3.5: success, unless every item of
 * it was rejected. How many were is a user property. One that is not a success ends the exchange: no PUBREL
 * follows.
 */
export function ackOf(connection: Connection, session: V5Session, unacked: UnackedPublish): Ack {
  const { qos, messageId, outcome } = unacked;
  // Nearly all.
  if (qos === 1 && (!outcome || outcome.rejected.length === 0)) return messageId;
  const rejected = outcome ? outcome.rejected.filter(isItem) : [];
  const [first] = rejected;
  if (!outcome || !first) return qos === 1 ? messageId : acknowledgement(qos, messageId, 0, null);
  const isAll = outcome.stored + outcome.repeated === 0;
  const code = isAll ? codeOf(first) : reason.success;
  if (qos === 2 && code !== reason.success) connection.unreleased?.delete(messageId);
  const count = rejected.reduce((sum, { more }) => sum + (more ?? 1), 0);
  const reasonString = isAll ? textOf(first) : null;
  const whole = acknowledgement(qos, messageId, code, { reasonString, rejected: count });
  // [MQTT-3.1.2-29] [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3]
  if (session.wantsProblems && whole.length <= session.maxPacketBytes) return whole;
  return acknowledgement(qos, messageId, code, null);
}

/** A member that has no effect is a remark: its item was taken. */
const isItem = ({ reason: word }: Rejection) => word !== 'unknown-member';

function codeOf({ reason: word }: Rejection): number {
  if (word === 'invalid-json') return reason.payloadFormatInvalid;
  return word === 'unknown-topic' ? reason.topicInvalid : reason.implementationSpecific;
}

// [MQTT-1.5.4-1] [MQTT-1.5.4-2]
const textOf = ({ message }: Rejection) =>
  message.slice(0, maxReasonLength).toWellFormed().replaceAll('\0', '\uFFFD');
