import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { RegisteredDevice } from '../api.ts';
import { createFleet } from '../client/fleet.ts';
import type { Backlog } from './backlog.ts';

/** `inFlight`: messages under way; over HTTP, on a connection each. */
export type Sending = {
  device: RegisteredDevice;
  port: number;
  inFlight: number;
  backlog: Backlog;
};

/** Sends the whole backlog over MQTT with QoS 1. Returns a function that stops it. */
export function publish({ device, port, inFlight, backlog }: Sending): () => Promise<void> {
  const { uuid, token } = device;
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    inFlight,
    devices: [
      { clientId: uuid, username: uuid, password: token, topic: `devices/${uuid}/up/measurements` },
    ],
    payload: backlog.next,
    onAcknowledged: backlog.acknowledged,
  });
  fleet.start();
  void fleet.connect();
  return () => fleet.close();
}

/** The same over HTTP. Messages refused for now (429, 503) are sent again after `Retry-After`. */
export function post({ device, port, inFlight, backlog }: Sending): () => Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  let isOver = false;
  async function send(): Promise<void> {
    for (let body = backlog.next(); body !== null && !isOver;) {
      const sending = request({
        agent,
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `/devices/${device.uuid}/up/measurements`,
        headers: {
          Authorization: `Bearer ${device.token}`,
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
        },
      });
      sending.end(body);
      const [response] = await once(sending, 'response');
      response.resume();
      await once(response, 'end');
      const retryAfter = Number(response.headers['retry-after'] ?? 1);
      if (response.statusCode === 429 || response.statusCode === 503) {
        await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
        continue;
      }
      if (response.statusCode !== 200) throw new Error(`Answered ${response.statusCode}.`);
      backlog.acknowledged();
      body = backlog.next();
    }
  }
  for (let n = 0; n < inFlight; n += 1)
    send().catch((error: unknown) => {
      if (!isOver) backlog.failed(error);
    });
  return async () => {
    isOver = true;
    agent.destroy();
  };
}
