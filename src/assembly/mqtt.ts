import { startConnector } from '../../connector/mqtt/server.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { connectorLimits, connectorPorts } from './device-ports.ts';
import type { ConnectorSide, DeviceLogins } from './device-ports.ts';

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
      log: log.child({ component: 'mqtt', connectorId }),
      observe: observer,
      now: shared.monotonicClock,
      rateStore: side.rateStore,
    },
    connectorPorts(side, connectorId, logins),
  );
  shared.memory.addIntake(connector.pause);
  shared.edges.add('MQTT', (drainMs) => connector.close({ drainMs }));
  return connector;
}
