import type { Connector } from '../connector/broker.ts';
import { startApi } from './assembly/api.ts';
import { startDeviceSide } from './assembly/device-side.ts';
import { createEdges, createReleases } from './assembly/releases.ts';
import { startShared } from './assembly/shared.ts';
import type { Config } from './config.ts';
import { startMetrics } from './http/metrics.ts';
import type { Logger } from './log.ts';
import type { Addresses } from './ready.ts';

export type Service = {
  /** Where it really listens. */
  addresses: Addresses;
  /** Reads the certificate of MQTT over TLS again, where this process listens for it. */
  reloadCertificate(): Promise<void>;
  /** Accepts no more, stores and answers what is under way, and gives everything back. */
  close(): Promise<void>;
};

type Listening = {
  connector: Connector | null;
  http: { port: number } | null;
  metrics: { port: number } | null;
};

/** Starts the part of the service that `config.role` names. Nothing is left behind when it rejects. */
export async function startService(config: Config, log: Logger): Promise<Service> {
  const releases = createReleases();
  const edges = createEdges();
  const close = async () => {
    try {
      await edges.close();
    } finally {
      await releases.releaseAll();
    }
  };
  try {
    const shared = await startShared(config, log, { releases, edges });
    const connector = config.role.name === 'api' ? null : await startDeviceSide(shared);
    const http = config.role.name === 'connector' ? null : await startApi(shared, connector);
    const metrics = config.metricsListen
      ? await startMetrics(shared.metrics.registry, config.metricsListen)
      : null;
    if (metrics) releases.add(() => metrics.close());
    return {
      addresses: addressesOf(config, { connector, http, metrics }),
      reloadCertificate: async () => connector?.reloadCertificate(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function addressesOf(
  { httpListen, mqttListen, mqttsListen, metricsListen }: Config,
  { connector, http, metrics }: Listening,
): Addresses {
  const at = (listen: { host: string } | null, bound: { port: number } | null | undefined) =>
    listen && bound ? { host: listen.host, port: bound.port } : undefined;
  return {
    http: at(httpListen, http),
    mqtt: at(mqttListen, connector?.addresses.tcp),
    mqtts: at(mqttsListen, connector?.addresses.tls),
    metrics: at(metricsListen, metrics),
  };
}
