import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { encodeConnect, encodeString, writePublish } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause, work } from '../workers.ts';

const mqttConnections = 3_000;

/** A third says nothing, a third sends CONNECT byte by byte, a third logs in and stays. */
const connections: NoisyKind = {
  name: 'connections',
  says: '3,000 MQTT connections: silent, byte by byte, and logged in; opened again when closed',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 250);
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(enemy.mqttPort).resume();
        enemy.tally.count('opened');
        const { uuid = '', token = '' } = devices[n % devices.length] ?? {};
        const packet = encodeConnect({
          clientId: `${uuid}-${n}`,
          username: uuid,
          password: token,
          keepaliveSeconds: 60,
        });
        if (n % 3 === 1) void trickle(socket, packet, signal);
        if (n % 3 === 2) socket.write(packet);
        socket.once('close', () => setTimeout(open, 100, n).unref());
      };
      for (let n = 0; n < mqttConnections && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

async function trickle(
  socket: { write(bytes: Buffer): unknown; destroyed: boolean },
  packet: Buffer,
  signal: AbortSignal,
): Promise<void> {
  for (const byte of packet) {
    if (socket.destroyed || signal.aborted) return;
    socket.write(Buffer.from([byte]));
    await pause(200, signal);
  }
}

const reconnects: NoisyKind = {
  name: 'reconnects',
  says: '64 loops in which devices connect and leave at once, with right and wrong tokens',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 16);
    return (signal) =>
      work(64, signal, async (worker, turn) => {
        const { uuid = '', token = '' } = devices[worker % devices.length] ?? {};
        const password = turn % 4 === 3 ? 'wrong' : token;
        const socket = enemy.dial(enemy.mqttPort);
        const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password, keepaliveSeconds: 60 }),
        );
        await answered.catch(() => undefined);
        enemy.tally.count('answered');
        socket.resetAndDestroy();
      });
  },
};

/** Each message is under way when its connection is taken over, so it was read and will not be acknowledged. */
const sessionTakeover: NoisyKind = {
  name: 'session-takeover',
  says: '32 loops in which devices send a message and leave before it is acknowledged',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 64);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    return (signal) =>
      work(32, signal, async (worker, turn) => {
        const { uuid = '', token = '' } = devices[(worker + 32 * turn) % devices.length] ?? {};
        const items = Array.from({ length: 500 }, () => ({
          sId: '0x01',
          val: 1,
          ts: startTs + ++sent,
        }));
        const buffer = Buffer.alloc(65_536);
        const topic = encodeString(`devices/${uuid}/up/measurements`);
        const end = writePublish(buffer, 0, topic, 1, JSON.stringify(items));
        const socket = enemy.dial(enemy.mqttPort);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        const answered = once(socket, 'data').catch(() => undefined);
        await Promise.race([answered, once(socket, 'close').catch(() => undefined)]);
        if (!socket.destroyed) socket.write(buffer.subarray(0, end), () => socket.destroy());
        enemy.tally.count('left');
      });
  },
};

/** A machine that owns a /16 has all of these addresses. */
const addressesOfNet = 200;
const connectionsOfNet = 4_000;

const manyAddresses: NoisyKind = {
  name: 'many-addresses',
  says: '4,000 connections from 200 addresses that send wrong tokens',
  setUp: async (enemy) => {
    const packet = encodeConnect({
      clientId: 'x',
      username: '9b2f7c38-7e1f-4b43-9d3b-0d6f9e2b3f10',
      password: 'wrong',
      keepaliveSeconds: 60,
    });
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(enemy.mqttPort, `127.9.${n % addressesOfNet}.1`).resume();
        enemy.tally.count('opened');
        socket.write(packet);
        socket.once('close', () => setTimeout(open, 50, n).unref());
      };
      for (let n = 0; n < connectionsOfNet && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

const mqttFloodAddresses = 40;
/** At once, from each of these addresses. */
const mqttFloodConnections = 100;
const againMs = 500;

/** Half of them say nothing and are reset at once, half send a wrong token. Each starts again when it has ended. */
const mqttFlood: NoisyKind = {
  name: 'mqtt-flood',
  says: '4,000 MQTT connections from 40 addresses, silent or with wrong tokens, opened again as soon as they end',
  setUp: async (enemy) => {
    const packet = encodeConnect({
      clientId: 'x',
      username: '9b2f7c38-7e1f-4b43-9d3b-0d6f9e2b3f10',
      password: 'wrong',
      keepaliveSeconds: 60,
    });
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(enemy.mqttPort, `127.8.${n % mqttFloodAddresses}.1`).resume();
        enemy.tally.count('opened');
        if (n % 2 === 0) socket.write(packet);
        else socket.once('connect', () => socket.resetAndDestroy());
        socket.once('close', () => setTimeout(open, againMs, n).unref());
      };
      for (let n = 0; n < mqttFloodAddresses * mqttFloodConnections && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

const websocketsConnections = 500;
const websocketsUpgrade =
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: ';
/** Frames with a mask of zeros: fragments of one byte of a message that never ends, and pings. */
const fragments = Buffer.concat(
  Array.from({ length: 2_000 }, () =>
    Buffer.from([0x02, 0x81, 0, 0, 0, 0, 0x10, 0x89, 0x80, 0, 0, 0, 0]),
  ),
);

const websockets: NoisyKind = {
  name: 'websockets',
  says: '500 WebSockets that send fragments and pings instead of a CONNECT',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(`${websocketsUpgrade}${randomBytes(16).toString('base64')}\r\n\r\n`);
        socket.once('data', () => socket.write(fragments));
        socket.once('close', () => setTimeout(open, 50, n).unref());
      };
      for (let n = 0; n < websocketsConnections && !signal.aborted; n++) {
        open(n);
        if (n % 50 === 49) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

const websocketFramesUpgrade = [
  'GET /mqtt HTTP/1.1',
  'Host: x',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: mqtt',
  '\r\n',
].join('\r\n');

const framesAWrite = 2_000;
/** Binary frames without a payload, and pings: six and seven bytes each, which MQTT never sees. */
const frames = [
  [0x82, 0x80, 0, 0, 0, 0],
  [0x89, 0x81, 0, 0, 0, 0, 1],
].map((bytes) => Buffer.from(Array.from({ length: framesAWrite }, () => bytes).flat()));

const websocketFrames: NoisyKind = {
  name: 'websocket-frames',
  says: '40 connections without a login that send empty WebSocket frames, and pings',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(40, signal, async (worker) => {
        const socket = enemy.dial(port).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        enemy.tally.count('opened');
        socket.write(websocketFramesUpgrade);
        const flood = frames[worker % frames.length] ?? Buffer.alloc(0);
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('frames', framesAWrite);
          if (!socket.write(flood))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
        await closed;
      });
  },
};

const askedConnections = 6_000;
const asked = 'GET /v2/status HTTP/1.1\r\nHost: x\r\n\r\n';

const httpConnections: NoisyKind = {
  name: 'http-connections',
  says: '6,000 HTTP connections that send one request and stay open',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return async (signal) => {
      const open = () => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(asked);
        socket.once('close', () => setTimeout(open, 200).unref());
      };
      for (let n = 0; n < askedConnections && !signal.aborted; n++) {
        open();
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

const crowdsConnections = 10_000;
const deviceCount = 100;
/** As many from one address as the service accepts. */
const perAddress = 2_000;

type Asked = { name: string; says: string; requestOf: (uuid: string, token: string) => string };

/** Requests of 100 devices on 10,000 connections, each sent again when answered. Each device stays within its rate. */
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
        for (let n = 0; n < crowdsConnections && !signal.aborted; n += 1) {
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

/** A third poll of a device ends an older one, whose client polls again at once. */
const polls = crowd({
  name: 'polls',
  says: '10,000 polls of 100 devices at once, each repeated when it is answered',
  requestOf: (uuid, token) =>
    `${headOf(`GET /devices/${uuid}/down?wait=60&topics=display`, token)}\r\n`,
});

/** Nothing in it is stored, so the rates of measurements do not limit it. */
const uplinks = crowd({
  name: 'uplinks',
  says: '10,000 requests for the time from 100 devices at once, each repeated when it is answered',
  requestOf: (uuid, token) =>
    `${headOf(`POST /devices/${uuid}/up/time`, token)}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
});

/** Without a token, so that no account is charged. */
const strangers = crowd({
  name: 'strangers',
  says: '10,000 connections that request an unknown path, each again when it is answered',
  requestOf: () => 'GET /v2/nothing HTTP/1.1\r\nHost: x\r\n\r\n',
});

const descriptorsAddresses = 10;
const descriptorsConnections = 4_000;

/** What is written on a connection that then stays idle. */
const forms = [
  '',
  'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost:',
  'POST /v2/accounts/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
];

function hold(enemy: Enemy, n: number, signal: AbortSignal): void {
  if (signal.aborted) return;
  // A quarter of them on the MQTT port, where they say nothing.
  const isMqtt = n % 4 === 3;
  const port = isMqtt ? enemy.mqttPort : Number(new URL(enemy.url).port);
  const socket = enemy.dial(port, `127.9.${n % descriptorsAddresses}.1`).resume();
  enemy.tally.count('opened');
  if (!isMqtt) socket.write(forms[(n >> 2) % forms.length] ?? '');
  socket.once('close', () => setTimeout(hold, 500, enemy, n, signal).unref());
}

const descriptors: NoisyKind = {
  name: 'descriptors',
  says: '4,000 idle connections from 10 addresses to a service that may open 2,048 files',
  openFiles: 2_048,
  setUp: async (enemy) => async (signal) => {
    for (let n = 0; n < descriptorsConnections && !signal.aborted; n++) {
      hold(enemy, n, signal);
      if (n % 100 === 99) await pause(20, signal);
    }
    await enough(signal);
  },
};

const slowHttpConnections = 2_000;

/** Half of them send headers byte by byte, half a body that never ends. */
const slowHttp: NoisyKind = {
  name: 'slow-http',
  says: '2,000 HTTP connections whose requests never end',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const starts = [
      'GET /v2/devices HTTP/1.1\r\nHost: x\r\nX-A: ',
      'POST /v2/purposes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        `Authorization: Bearer ${enemy.account.token}\r\nContent-Length: 1000000\r\n\r\n{`,
    ];
    return async (signal) => {
      const open = new Set<ReturnType<typeof enemy.dial>>();
      const dial = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        open.add(socket);
        socket.write(starts[n % 2] ?? '');
        socket.once('close', () => {
          open.delete(socket);
          setTimeout(dial, 100, n).unref();
        });
      };
      for (let n = 0; n < slowHttpConnections && !signal.aborted; n++) {
        dial(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      while (!signal.aborted) {
        for (const socket of open) socket.write('x');
        await pause(2_000, signal);
      }
      await enough(signal);
    };
  },
};

const slowUplinksConnections = 1_500;
const slowUplinksBytes = 65_536;
/** A connection with more requests waiting behind another one is closed. */
const pipelined = 30;

/**
 * A third never ends its headers, a third its body, nearly all of which has arrived, a third its chunks. One in fifteen
 * has written dozens of requests, and reads no answer.
 */
const slowUplinks: NoisyKind = {
  name: 'slow-uplinks',
  says: '1,500 requests of a device over HTTP that never end, or whose answers nobody reads',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const body = {
      protocol: 'http',
      device: { name: 'slow' },
      module: [{ moduleId: 'm', senses: [{ sId: '0x01' }] }],
    };
    const answer = await enemy.ask('POST', '/v2/devices', { body });
    if (answer.status !== 200) throw new Error(`Registration: ${answer.status} ${answer.text}`);
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = JSON.parse(answer.text) as {
      deviceAuthUuid: string;
      deviceAuthToken: string;
    };
    const head =
      `POST /devices/${uuid}/up/measurements HTTP/1.1\r\nHost: x\r\n` +
      `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
    const value = '{"sId":"0x01","val":1}';
    const whole = `${head}Content-Length: ${value.length}\r\n\r\n${value}`;
    const blanks = ' '.repeat(slowUplinksBytes - 1_000);
    const starts = [
      { start: `${head}X-A: `, more: 'x' },
      { start: `${head}Content-Length: ${slowUplinksBytes}\r\n\r\n${blanks}`, more: ' ' },
      { start: `${head}Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n`, more: '1\r\n \r\n' },
    ];
    const unread = { start: whole.repeat(pipelined), more: whole };
    return async (signal) => {
      const open = new Map<ReturnType<typeof enemy.dial>, string>();
      const dial = (n: number) => {
        const isUnread = n % 15 === 0;
        const way = isUnread ? unread : starts[n % starts.length];
        if (!way || signal.aborted) return;
        const { start, more } = way;
        const socket = enemy.dial(port);
        if (isUnread) socket.pause();
        else socket.resume();
        enemy.tally.count('opened');
        open.set(socket, more);
        socket.write(start);
        socket.once('close', () => {
          open.delete(socket);
          setTimeout(dial, 100, n).unref();
        });
      };
      for (let n = 0; n < slowUplinksConnections && !signal.aborted; n++) {
        dial(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      while (!signal.aborted) {
        for (const [socket, more] of open) socket.write(more);
        await pause(2_000, signal);
      }
      await enough(signal);
    };
  },
};

const heldBodiesConnections = 600;
const heldBodiesBytes = 1_048_000;

/** Needs no account: a login whose body has arrived except for its last byte. */
const heldBodies: NoisyKind = {
  name: 'held-bodies',
  says: '600 logins with a body of 1 MB whose last byte does not arrive',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const request = Buffer.concat([
      Buffer.from(
        'POST /v2/accounts/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
          `Content-Length: ${heldBodiesBytes}\r\n\r\n`,
      ),
      Buffer.alloc(heldBodiesBytes - 1, 0x20),
    ]);
    return async (signal) => {
      const open = () => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(request);
        socket.once('close', () => setTimeout(open, 100).unref());
      };
      for (let n = 0; n < heldBodiesConnections && !signal.aborted; n++) {
        open();
        if (n % 20 === 19) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};

/** Connections: many of them, silent, begun and never ended, opened again as soon as they are closed. */
export const connectionKinds: NoisyKind[] = [
  connections,
  reconnects,
  sessionTakeover,
  manyAddresses,
  mqttFlood,
  websockets,
  websocketFrames,
  httpConnections,
  polls,
  uplinks,
  strangers,
  descriptors,
  slowHttp,
  slowUplinks,
  heldBodies,
];
