/* oxlint-disable unicorn/require-post-message-target-origin -- threads have none */
import { once } from 'node:events';
import { request } from 'node:http';
import { parentPort, Worker, workerData } from 'node:worker_threads';

export type Ask = { method: string; path: string; body?: string };

/** Sends requests from a thread of its own, so that what is measured here is the service's part only. */
export function startSender(port: number) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port } });
  return {
    send: async (ask: Ask): Promise<number> => {
      worker.postMessage(ask);
      const [status] = (await once(worker, 'message')) as [number];
      return status;
    },
    close: () => worker.terminate(),
  };
}

parentPort?.on('message', ({ method, path, body }: Ask) => {
  const headers = {
    authorization: 'Bearer bench',
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  const { port } = workerData as { port: number };
  const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  sent.on('response', (response) => {
    response.resume().on('end', () => parentPort?.postMessage(response.statusCode ?? 0));
  });
  sent.on('error', () => parentPort?.postMessage(0));
  sent.end(body);
});
