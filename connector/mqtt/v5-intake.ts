import type { RateStore } from '../device/device-rates.ts';
import type { ConnectorLimits } from '../options.ts';
import type { Connection } from './connection.ts';
import { maxFilterBytes } from './frame-scanner.ts';
import type { Publisher } from './publish.ts';
import { reason } from './reason-codes.ts';
import { checkConnect, unspeakable, versionOf, type V5Session } from './v5-connect.ts';
import { checkAck, checkDisconnect, checkFilters, frameAt, refused } from './v5-frames.ts';
import type { Checked, Frame } from './v5-frames.ts';
import { readV5Publish } from './v5-publish.ts';
import { connackRefusal } from './v5-write.ts';

export type IntakeDeps = {
  limits: Pick<ConnectorLimits, 'maxSubscriptions' | 'maxTopicLevels'>;
  publisher: Pick<Publisher, 'acceptLeading' | 'acceptV5'>;
  rateStore: Pick<RateStore, 'takeItems'>;
};

/** So many bytes of properties count as a measurement: they take about as long to be looked at. */
const bytesCountedAsMeasurement = 100;

/** The highest version of MQTT there is. */
const newest = 5;

/**
 * Takes what clients of MQTT 5 send. Their packets are checked here, byte by byte, before aedes sees them: it
 * is given the same packets without properties, and no PUBLISH. So what a stranger writes into properties
 * reaches no parser that builds objects of it, and every connection that ends is told why.
 */
export function createIntake({ limits, publisher, rateStore }: IntakeDeps) {
  const filterLimits = {
    maxFilterBytes: maxFilterBytes(limits.maxSubscriptions),
    maxTopicLevels: limits.maxTopicLevels,
  };

  /** What aedes gets of a whole CONNECT, of whatever version; null: it was refused. */
  function takeConnect(connection: Connection, bytes: Buffer): Buffer | null {
    const frame = frameAt(bytes, 0);
    const version = versionOf(bytes, frame);
    if (version === null || version < newest) return bytes;
    // Also one that has the highest bit set, which bridges between brokers use.
    if (version > newest) {
      connection.refusal = 'protocol-version';
      refuse(connection, reason.unsupportedVersion);
      return null;
    }
    const { fault, bytes: stripped, session } = checkConnect(bytes, frame);
    if (stripped === null) {
      refuse(connection, fault);
      return null;
    }
    connection.v5 = session;
    connection.scanner.isV5 = true;
    return stripped;
  }

  function refuse(connection: Connection, code: number): void {
    connection.refusal ??= 'malformed';
    // No packet is small enough for it. [MQTT-3.1.2-24]
    if (code === unspeakable) connection.close('malformed');
    else connection.leave('malformed', connackRefusal(code));
  }

  /** Takes whole packets; gives what aedes is to read of them. */
  function takePackets(connection: Connection, session: V5Session, whole: Buffer): Buffer | null {
    // Nearly all: without an object for each part of a packet.
    const bytes = publisher.acceptLeading(connection, whole);
    if (bytes === null) return null;
    const rest: Buffer[] = [];
    for (let at = 0; at < bytes.length && connection.ending === null;) {
      const frame = frameAt(bytes, at);
      if (frame.type === 3) publishOne(connection, bytes, frame);
      else {
        const checked = check(bytes, frame, at, session);
        if (checked.fault) connection.close('malformed', checked.fault);
        else if (checked.bytes) rest.push(checked.bytes);
        // Nothing follows it. [MQTT-3.14.4-1]
        if (frame.type === 14) break;
      }
      at = frame.end;
    }
    if (connection.ending !== null || rest.length === 0) return null;
    return rest.length === 1 ? (rest[0] as Buffer) : Buffer.concat(rest);
  }

  function publishOne(connection: Connection, bytes: Buffer, frame: Frame): void {
    const message = readV5Publish(bytes, frame);
    if (message.propertyBytes >= bytesCountedAsMeasurement)
      charge(connection, Math.floor(message.propertyBytes / bytesCountedAsMeasurement));
    if (message.fault) connection.close('malformed', message.fault);
    else if (levelsOf(message.topic) > limits.maxTopicLevels)
      connection.close('malformed', reason.topicInvalid);
    else publisher.acceptV5(connection, message);
  }

  function charge({ device, heardMs }: Connection, units: number): void {
    if (!device) return;
    rateStore.takeItems(device.rates, units, heardMs);
  }

  function check(bytes: Buffer, frame: Frame, at: number, session: V5Session): Checked {
    switch (frame.type) {
      case 4:
      case 5:
      case 6:
      case 7:
        return checkAck(bytes, frame);
      case 8:
      case 10:
        return checkFilters(bytes, frame, filterLimits);
      case 12:
        // [MQTT-2.1.3-1]
        if (frame.flags !== 0) return refused(reason.malformed);
        return { fault: 0, bytes: bytes.subarray(at, frame.end) };
      case 14:
        return checkDisconnect(bytes, frame, session.expirySeconds);
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
