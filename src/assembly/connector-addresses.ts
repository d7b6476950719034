import type { Connector } from '../../connector/mqtt/server.ts';
import type { Config } from '../config/config.ts';
import type { ConnectorAddress } from '../devices/pick-connector.ts';

/**
 * Where devices are told to connect; an address left open is where this process really listens. Where plain MQTT is
 * turned off, that is MQTT over TLS, or over a WebSocket where there is no certificate.
 */
export function listConnectors(
  config: Config,
  connector: Connector | null,
  httpPort: number,
): ConnectorAddress[] {
  const ports = {
    mqtt: connector?.addresses.tcp?.port ?? config.mqttListen?.port ?? 1883,
    mqtts: connector?.addresses.tls?.port ?? config.mqttsListen?.port ?? 8883,
    ws: httpPort,
    wss: 443,
    http: httpPort,
    https: 443,
  };
  const insteadOfPlain = config.mqttsListen ? 'mqtts' : 'ws';
  return config.connectors.map(({ id, kind, name, protocol: asked, host, port }) => {
    const isOff = asked === 'mqtt' && port === null && config.mqttListen === null;
    const protocol = isOff ? insteadOfPlain : asked;
    return {
      id,
      kind,
      name,
      protocol,
      host: host ?? config.publicHost,
      port: port ?? ports[protocol],
    };
  });
}
