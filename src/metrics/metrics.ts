import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Observe } from '../http/guard.ts';
import { version } from '../version.ts';

export type Metrics = {
  /** Others register what they measure here; never with a device as a label. */
  registry: Registry;
  observeHttp: Observe;
};

/** A registry with the process's own metrics and those of HTTP. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'build_info',
    help: 'Always 1: which version runs, on which Node.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.versions.node }, 1);
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the first header to the answer, by documented path.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  return {
    registry,
    // Anybody can send any method and path: neither becomes a label.
    observeHttp: ({ method, route, status, seconds }) =>
      durations.observe({ method: route === '' ? '' : method, route, status }, seconds),
  };
}

/** Serves `/metrics` on an address of its own. Rejects when it cannot be had. */
export async function startMetrics(
  registry: Registry,
  { host, port }: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
