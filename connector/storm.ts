import type { Uplink } from '../src/core/uplink.ts';
import type { DeviceIdentity } from '../src/core/uplink.ts';
import type { ConnectorPorts } from './ports.ts';
import type { Registry } from './registry.ts';

/** Keeps, once a minute, a rejection that says that a device connects more often than it is let in. */
export function tellOfStorm(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayTellOfStorm'>,
  identity: DeviceIdentity,
): void {
  if (!registry.mayTellOfStorm(identity)) return;
  const uplink: Uplink = {
    topic: 'CONNECT',
    excerpt: '',
    arrivedTs: ports.clock(),
    content: { kind: 'none' },
    rejections: [
      {
        reason: 'too-many-connects',
        message: 'It connects again and again: further connections are refused for a moment.',
      },
    ],
  };
  // Where it cannot be stored nothing is lost but these words: the metric has counted.
  ports.ingest(identity, uplink, { isWithdrawn: false, stored() {}, failed() {} });
}
