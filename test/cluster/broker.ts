import type { ConnectorSettings } from '../../src/settings.ts';
import type { Mosquitto } from '../harness/mosquitto.ts';

/** A connector of kind `bridge` for a broker of the test's own. */
export function bridgeTo(
  broker: Pick<Mosquitto, 'port' | 'url'>,
  id: number,
  shareName: string | null = 'sensorium',
): ConnectorSettings {
  return {
    kind: 'bridge',
    id,
    name: `broker-${id}`,
    protocol: 'mqtt',
    host: '127.0.0.1',
    port: broker.port,
    broker: { url: broker.url, shareName },
  };
}
