import type { RegisteredDevice } from '../api.ts';
import { createFleet } from '../client/fleet.ts';
import type { Backlog } from './backlog.ts';

/** `inFlight`: messages under way; over HTTP, on a connection each. */
export type Sending = {
  device: RegisteredDevice;
  port: number;
  isHttp: boolean;
  inFlight: number;
  backlog: Backlog;
};

/** What is refused for now (429, 503) is sent again after half to one and a half times this, or as the answer asks. */
const retryMs = 1_000;

/** Sends all of it over MQTT with QoS 1, or over HTTP; gives what ends that. */
export function send({ device, port, isHttp, inFlight, backlog }: Sending): () => Promise<void> {
  const { uuid, token } = device;
  const spec = {
    clientId: uuid,
    username: uuid,
    password: token,
    topic: `devices/${uuid}/up/measurements`,
  };
  const http = { port, connections: 1, isKept: true, body: 'json', most: 1 } as const;
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    inFlight,
    devices: isHttp ? Array.from({ length: inFlight }, () => ({ ...spec, http })) : [spec],
    payload: backlog.next,
    onAcknowledged: backlog.acknowledged,
    reconnectDelayMs: retryMs,
    obeysRetryAfter: true,
    onOffline(_device, reason, status = 503) {
      if (status !== 429 && status !== 503) backlog.failed(new Error(reason));
    },
  });
  fleet.start();
  void fleet.connect();
  return () => fleet.close('reset');
}
