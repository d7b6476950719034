import type { Rejection } from '../../src/contract/rejection.ts';
import type { Uplink } from '../../src/contract/uplink.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { ConnectorPorts } from '../ports.ts';
import { excerptOf, maxTopicLength } from '../device/parse-uplink.ts';
import type { Device } from './connection.ts';
import type { HeldMessage } from './held-messages.ts';
import type { Registry } from './sessions.ts';

type Excess = 'too-many-connects' | 'too-many-connections';

const messages: Record<Excess, string> = {
  'too-many-connects': 'It connects again and again: further connections are refused for a moment.',
  'too-many-connections':
    "The account's quota connections is used up: this one was refused. This is said once a minute.",
};

/** Keeps, once a minute, a rejection that says why a device that may connect is not let in. */
export function tellOfExcess(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayTellOfExcess'>,
  identity: DeviceIdentity,
  reason: Excess,
): void {
  if (registry.mayTellOfExcess(identity))
    tell(ports, identity, 'CONNECT', { reason, message: messages[reason] });
}

/** Keeps, once a minute, a rejection that says why a message was not sent to a device. */
export function tellOfTooLarge(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayTellOfExcess'>,
  identity: DeviceIdentity,
  packet: { topic: string; bytes: number; mostBytes: number },
): void {
  const { topic, bytes, mostBytes } = packet;
  const message = `A message of ${bytes} bytes was not sent: the device takes packets of ${mostBytes} (MQTT 5, Maximum Packet Size).`;
  if (registry.mayTellOfExcess(identity))
    tell(ports, identity, topic, { reason: 'packet-too-large', message });
}

/**
 * Keeps, once a minute, a rejection that says that a session is taken over again and again. One time is what a device
 * does that comes back before its lost connection is noticed.
 */
export function tellOfTakeovers(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayTellOfExcess'>,
  identity: DeviceIdentity,
): void {
  const message =
    'Its session was taken over twice within a minute: its link breaks often, or two clients use one client identifier.';
  if (registry.mayTellOfExcess(identity))
    tell(ports, identity, 'CONNECT', { reason: 'session-taken-over', message });
}

/** Keeps, once a minute, a rejection that says why the connection was closed of a device that sends no PUBACK. */
export function tellOfUnacknowledged(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayTellOfExcess'>,
  identity: DeviceIdentity,
  topic: string,
): void {
  const message =
    'It did not acknowledge this message (PUBACK) in time: its connection was closed.';
  if (registry.mayTellOfExcess(identity))
    tell(ports, identity, topic, { reason: 'message-not-acknowledged', message });
}

/**
 * Keeps a rejection of a message that a device published where it may not; its connection ends. Told each time, as of
 * any message that is wrong: ingest bounds what is kept of a device, and a device connects only so often.
 */
export function tellOfForeignTopic(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  { identity, upPrefix }: Device,
  { topic, payload }: HeldMessage,
): void {
  const message = `A device publishes below ${upPrefix}, and nowhere else: its connection was closed.`;
  tell(
    ports,
    identity,
    topic.slice(0, maxTopicLength),
    { reason: 'foreign-topic', message },
    payload,
  );
}

/** If it cannot be stored, only this explanation is lost. */
function tell(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  identity: DeviceIdentity,
  topic: string,
  rejection: Rejection,
  payload?: Buffer,
): void {
  const uplink: Uplink = {
    topic,
    excerpt: payload ? excerptOf(payload) : '',
    arrivedTs: ports.clock(),
    content: { kind: 'none' },
    rejections: [rejection],
  };
  ports.ingest(identity, uplink, { isWithdrawn: false, stored() {}, failed() {} });
}
