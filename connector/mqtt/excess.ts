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
  if (!registry.mayTellOfExcess(identity)) return;
  const uplink: Uplink = {
    topic: 'CONNECT',
    excerpt: '',
    arrivedTs: ports.clock(),
    content: { kind: 'none' },
    rejections: [{ reason, message: messages[reason] }],
  };
  // If it cannot be stored, only this explanation is lost: the metric has counted the refusal.
  ports.ingest(identity, uplink, { isWithdrawn: false, stored() {}, failed() {} });
}
