import type { Rejection } from '../../src/contract/rejection.ts';
import type { Uplink } from '../../src/contract/uplink.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { Registry } from './registry.ts';

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

/** If it cannot be stored, only this explanation is lost. */
function tell(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  identity: DeviceIdentity,
  topic: string,
  rejection: Rejection,
): void {
  const uplink: Uplink = {
    topic,
    excerpt: '',
    arrivedTs: ports.clock(),
    content: { kind: 'none' },
    rejections: [rejection],
  };
  ports.ingest(identity, uplink, { isWithdrawn: false, stored() {}, failed() {} });
}
