import type { Socket } from 'node:net';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 10_000;
const deviceCount = 100;
/** As many of one address as the service takes. */
const perAddress = 2_000;

type Asked = { name: string; says: string; requestOf: (uuid: string, token: string) => string };

/** Requests of 100 devices on 10,000 connections, each sent again when it is answered: each device keeps to its rate. */
function crowd({ name, says, requestOf }: Asked): NoisyKind {
  return {
    name,
    says,
    // Ten thousand requests that wait.
    memoryMb: 250,
    async setUp(enemy) {
      const port = Number(new URL(enemy.url).port);
      const devices = await registerDevices(enemy, deviceCount);
      return async (signal) => {
        const sockets: Socket[] = [];
        for (let n = 0; n < connections && !signal.aborted; n += 1) {
          const { uuid, token } = devices[n % deviceCount] ?? { uuid: '', token: '' };
          const request = requestOf(uuid, token);
          const address = n < perAddress ? undefined : `127.0.9.${Math.floor(n / perAddress)}`;
          const socket = enemy.dial(port, address);
          sockets.push(socket);
          const ask = (): void => {
            if (signal.aborted || socket.destroyed) return;
            enemy.tally.count(name);
            socket.write(request);
          };
          socket.once('connect', ask).on('data', () => void setTimeout(ask, 10).unref());
          if (n % 50 === 49) await pause(20, signal);
        }
        await enough(signal);
        for (const socket of sockets) socket.destroy();
      };
    },
  };
}

const headOf = (target: string, token: string): string =>
  `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;

/** More of a device's polls than two end each other: those that are answered ask again at once. */
export const polls = crowd({
  name: 'polls',
  says: '10,000 polls of 100 devices at once, each asked again when it is answered',
  requestOf: (uuid, token) =>
    `${headOf(`GET /devices/${uuid}/down?wait=60&topics=display`, token)}\r\n`,
});

/** Nothing of it is stored, so that the rates of measurements do not hold it back. */
export const uplinks = crowd({
  name: 'uplinks',
  says: '10,000 requests for the time of 100 devices at once, each sent again when it is answered',
  requestOf: (uuid, token) =>
    `${headOf(`POST /devices/${uuid}/up/time`, token)}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
});

/** Without a token, so that no account has to answer for it. */
export const strangers = crowd({
  name: 'strangers',
  says: '10,000 connections that ask for what there is not, each again when it is answered',
  requestOf: () => 'GET /v2/nothing HTTP/1.1\r\nHost: x\r\n\r\n',
});
