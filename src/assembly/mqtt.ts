import { Gauge } from 'prom-client';
import { startConnector } from '../../connector/mqtt/server.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { connectorLimits, connectorPorts } from './device-ports.ts';
import type { ConnectorSide, DeviceLogins } from './device-ports.ts';
import { startEvery } from '../lib/every.ts';
import type { Shared } from './shared.ts';

/** Takes what devices send over MQTT, with a broker of its own. */
export async function startMqtt(
  side: ConnectorSide,
  connectorId: number,
  logins: DeviceLogins,
): Promise<Connector> {
  const { shared, observer } = side;
  const { config, log } = shared;
  const connector = await startConnector(
    {
      tcp: config.mqttListen,
      tls: config.mqttsListen,
      limits: connectorLimits(config),
      trustedProxies: config.mqtt.trustedProxies,
      places: shared.places,
      log: log.child({ component: 'mqtt', connectorId }),
      observe: observer,
      now: shared.monotonicClock,
      rateStore: side.rateStore,
    },
    connectorPorts(side, connectorId, logins),
  );
  shared.memory.addIntake(connector.pause);
  watchExpiry(shared, connector.certificateExpiresTs);
  shared.edges.add('MQTT', (drainMs) => connector.close({ drainMs }));
  return connector;
}

const dayMs = 86_400_000;
/** Time enough to notice and to renew: certificates that renew themselves do so 30 days before their end. */
const soonMs = 21 * dayMs;

/** Tells in a metric when the certificate ends, and says so in the log, once a day, when that is near or has passed. */
function watchExpiry(
  { clock, log, metrics, releases }: Shared,
  expiresTs: Connector['certificateExpiresTs'],
): void {
  new Gauge({
    name: 'mqtt_certificate_expires_timestamp_seconds',
    help: 'When the certificate of MQTT over TLS ends, in seconds since 1970.',
    labelNames: ['protocol'],
    registers: [metrics.registry],
    collect() {
      const ts = expiresTs();
      if (ts !== null) this.set({ protocol: 'mqtts' }, ts / 1_000);
    },
  });
  if (expiresTs() === null) return;
  const told = log.child({ component: 'mqtt' });
  const check = async () => {
    const leftMs = (expiresTs() ?? Infinity) - clock();
    if (leftMs > soonMs) return;
    const days = Math.floor(Math.abs(leftMs) / dayMs);
    const when = leftMs < 0 ? `ended ${days} days ago` : `ends in ${days} days`;
    told.warn(
      { event: 'certificate.ends' },
      `The certificate of MQTT over TLS ${when}: devices refuse it then.`,
    );
  };
  releases.add('certificate', startEvery(dayMs, check));
}
