/* oxlint-disable unicorn/require-post-message-target-origin -- threads have none */
import { once } from 'node:events';
import { request } from 'node:http';
import { parentPort, Worker, workerData } from 'node:worker_threads';

export type Ask = {
  method: string;
  path: string;
  body?: string;
  /** Media type of the body; JSON if absent. */
  type?: string;
  accept?: string;
  /** For a stream, which is closed once it has delivered something. */
  lastEventId?: string;
};

/** Sends requests from a thread of its own, so that only the service's part is measured here. */
export function startSender(port: number, token = 'bench') {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port, token } });
  return {
    send: async (ask: Ask): Promise<number> => {
      worker.postMessage(ask);
      const [status] = (await once(worker, 'message')) as [number];
      return status;
    },
    close: () => worker.terminate(),
  };
}

parentPort?.on('message', ({ method, path, body, type, accept, lastEventId }: Ask) => {
  const { port, token } = workerData as { port: number; token: string };
  const headers = {
    authorization: `Bearer ${token}`,
    ...(accept === undefined ? {} : { accept }),
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    ...(body === undefined
      ? {}
      : { 'content-type': type ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  sent.on('response', (response) => {
    response.resume().on('close', () => parentPort?.postMessage(response.statusCode ?? 0));
    if (lastEventId !== undefined)
      response.once('data', () => setTimeout(() => sent.destroy(), 500));
  });
  sent.on('error', () => parentPort?.postMessage(0));
  sent.end(body);
});
