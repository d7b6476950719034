import type { RateStore } from '../device/rates.ts';
import type { ConnectorLimits } from '../options.ts';
import { checkConnect, protocolOf, unspeakable } from './connect-packet.ts';
import type { Connection } from './connection.ts';
import { maxFilterBytes } from './frame-scanner.ts';
import { checkAck, checkDisconnect, checkFilters, frameAt, refused } from './frames.ts';
import type { Checked, Frame } from './frames.ts';
import { readWholePublish } from './publish-frame.ts';
import type { Publisher } from './publish.ts';
import { reason } from './reason-codes.ts';
import { connackRefusal } from './v5-write.ts';

export type IntakeDeps = {
  limits: Pick<ConnectorLimits, 'maxSubscriptions' | 'maxTopicLevels'>;
  publisher: Pick<Publisher, 'acceptLeading' | 'accept'>;
  rateStore: Pick<RateStore, 'takeItems'>;
};

/** So many bytes of properties count as a measurement: they take about as long to be looked at. */
const bytesCountedAsMeasurement = 100;

/** The highest version of MQTT there is. */
const newest = 5;

/**
 * Takes whole packets, of MQTT 3.1.1 and 5 alike. They are checked here, byte by byte, before aedes sees them: it is
 * given the same packets without properties, and no PUBLISH. So both versions keep to the same rules, what a stranger
 * writes into properties reaches no parser that builds objects of it, and a client of MQTT 5 is told why it is closed.
 */
export function createIntake({ limits, publisher, rateStore }: IntakeDeps) {
  const filterLimits = {
    maxFilterBytes: maxFilterBytes(limits.maxSubscriptions),
    maxTopicLevels: limits.maxTopicLevels,
  };

  /** What aedes gets of a whole CONNECT, of whatever version; null: it was refused. */
  function takeConnect(connection: Connection, bytes: Buffer): Buffer | null {
    const frame = frameAt(bytes, 0);
    const { name = '', version = 0 } = protocolOf(bytes, frame) ?? {};
    // Also one that has the highest bit set, which bridges between brokers use.
    if (name === 'MQTT' && version > newest) {
      connection.refusal = 'protocol-version';
      refuse(connection, reason.unsupportedVersion);
      return null;
    }
    const isV5 = name === 'MQTT' && version === newest;
    const isV3 = version === 3 || (name === 'MQTT' && version === 4);
    // No protocol that is spoken here, which aedes answers.
    if (!isV5 && !isV3) return bytes;
    const { fault, bytes: stripped, session } = checkConnect(bytes, frame, isV5);
    if (stripped === null) {
      if (isV5) refuse(connection, fault);
      else refuseInSilence(connection);
      return null;
    }
    if (!isV5) return stripped;
    connection.v5 = session;
    connection.scanner.isV5 = true;
    return stripped;
  }

  /** [MQTT-3.1.4-1] */
  function refuseInSilence(connection: Connection): void {
    connection.refusal ??= 'malformed';
    connection.close('malformed');
  }

  function refuse(connection: Connection, code: number): void {
    // No packet is small enough for it. [MQTT-3.1.2-24]
    if (code === unspeakable) return refuseInSilence(connection);
    connection.refusal ??= 'malformed';
    connection.leave('malformed', connackRefusal(code));
  }

  /** Takes whole packets; gives what aedes is to read of them. */
  function takePackets(connection: Connection, whole: Buffer): Buffer | null {
    // Nearly all: without an object for each part of a packet.
    const bytes = publisher.acceptLeading(connection, whole);
    if (bytes === null) return null;
    const rest: Buffer[] = [];
    for (let at = 0; at < bytes.length && !connection.isBroken;) {
      const frame = frameAt(bytes, at);
      if (frame.type === 3) publishOne(connection, bytes, frame);
      else {
        const checked = check(connection, bytes, frame, at);
        if (checked.fault) connection.breakOff('malformed', checked.fault);
        else if (checked.bytes) rest.push(checked.bytes);
      }
      at = frame.end;
    }
    if (rest.length === 0) return null;
    return rest.length === 1 ? (rest[0] as Buffer) : Buffer.concat(rest);
  }

  function publishOne(connection: Connection, bytes: Buffer, frame: Frame): void {
    const message = readWholePublish(bytes, frame, connection.v5 !== null);
    if (message.propertyBytes >= bytesCountedAsMeasurement)
      charge(connection, Math.floor(message.propertyBytes / bytesCountedAsMeasurement));
    if (message.fault) connection.breakOff('malformed', message.fault);
    else if (levelsOf(message.topic) > limits.maxTopicLevels)
      connection.breakOff('malformed', reason.topicInvalid);
    else publisher.accept(connection, message);
  }

  function charge({ device, heardMs }: Connection, units: number): void {
    if (!device) return;
    rateStore.takeItems(device.rates, units, heardMs);
  }

  function check({ v5 }: Connection, bytes: Buffer, frame: Frame, at: number): Checked {
    switch (frame.type) {
      case 4:
      case 5:
      case 6:
      case 7:
        return checkAck(bytes, frame);
      case 8:
      case 10:
        return checkFilters(bytes, frame, filterLimits, v5 !== null);
      case 12:
        // [MQTT-2.1.3-1]
        if (frame.flags !== 0) return refused(reason.malformed);
        return { fault: 0, bytes: bytes.subarray(at, frame.end) };
      case 14:
        return checkDisconnect(bytes, frame, v5?.expirySeconds ?? 0);
      // The frame scanner lets no other type pass.
      default:
        return refused(reason.protocolError);
    }
  }

  return { takeConnect, takePackets };
}

/** Without an array for each message. */
function levelsOf(topic: string): number {
  let levels = 1;
  for (let at = topic.indexOf('/'); at >= 0; at = topic.indexOf('/', at + 1)) levels += 1;
  return levels;
}

export type Intake = ReturnType<typeof createIntake>;
