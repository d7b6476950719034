import { once } from 'node:events';
import {
  encodeConnect,
  encodeString,
  encodeSubscribe,
  packetOf,
} from '../../../../bench/client/packets.ts';
import { type EnemyDevice, createReadings, flood, install, registerDevices } from '../devices.ts';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { enough, pause, work } from '../workers.ts';

const sizes = [65_000, 262_144];

/** Half of them fit into a packet, half are four times as large. */
const bigPayloads: NoisyKind = {
  name: 'big-payloads',
  says: '20 devices that send payloads of 64 and of 256 KiB',
  quotaBytes: () => 20 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const texts = sizes.map((size) => JSON.stringify({ sId: 'x'.repeat(size - 20), val: 1 }));
    return (signal) =>
      flood(enemy, { devices, payload: (device) => texts[device % 2] ?? null }, signal);
  },
};

const packetBytes = 262_144;
const floods = 20;
const slow = 300;
/** A packet's bytes besides its payload, with its fixed header. */
const headBytes = 128;

/** All but the end of a message of measurements of the largest size. */
function begun({ uuid = '' }: Partial<EnemyDevice>): Buffer {
  const payload = Buffer.alloc(packetBytes - headBytes, ' ');
  const topic = encodeString(`devices/${uuid}/up/measurements`);
  return packetOf(0x32, [topic, Buffer.from([0, 1]), payload]).subarray(0, -10_000);
}

async function hold(enemy: Enemy, device: EnemyDevice, signal: AbortSignal): Promise<void> {
  const login = { clientId: device.uuid, username: device.uuid, password: device.token };
  const socket = enemy.dial(enemy.mqttPort).resume();
  const closed = once(socket, 'close').catch(() => undefined);
  socket.write(encodeConnect({ ...login, keepaliveSeconds: 60 }));
  socket.write(begun(device));
  enemy.tally.count('begun');
  while (!socket.destroyed && !signal.aborted) {
    socket.write(' ');
    await Promise.race([pause(2_000, signal), closed]);
  }
}

/** 256 KiB each: one that is sent whole takes long to parse, one that never ends takes memory. */
const largePackets: NoisyKind = {
  name: 'large-packets',
  says: '20 devices that send measurements in packets of 256 KiB, and 300 whose packets never end',
  settings: () => ({ mqtt: { maxMeasurementPacketBytes: packetBytes } }),
  async setUp(enemy) {
    const devices = await registerDevices(enemy, floods);
    // From an account of their own, so that their memory counts only against that.
    const account = await enemy.registerAccount();
    const slowDevices = await registerDevices(enemy, slow, { account });
    const readings = createReadings();
    const payload = (device: number) => readings(device, 1_000).padEnd(packetBytes - headBytes);
    return async (signal) => {
      await Promise.all([
        flood(enemy, { devices, payload, inFlight: 4 }, signal),
        work(slow, signal, async (worker) => {
          const device = slowDevices[worker];
          if (device) await hold(enemy, device, signal);
        }),
      ]);
    };
  },
};

const pingsAWrite = 5_000;

/** PINGREQ, and PUBREC, PUBREL and PUBCOMP of messages that never existed: two to four bytes each, read one by one. */
function oddPacketsOnce(): Buffer {
  const one = [0xc0, 0, 0x50, 2, 0, 1, 0x62, 2, 0, 2, 0x70, 2, 0, 3];
  // UNSUBSCRIBE from "x".
  const unsubscribe = [0xa2, 5, 0, 4, 0, 1, 0x78];
  return Buffer.from(
    Array.from({ length: pingsAWrite / 5 }, () => [...one, ...unsubscribe]).flat(),
  );
}

const oddPackets: NoisyKind = {
  name: 'odd-packets',
  says: '20 devices that send pings, UNSUBSCRIBE, and acknowledgements of messages they never got, as fast as they can',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const flood = oddPacketsOnce();
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('packets', pingsAWrite);
          if (!socket.write(flood))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};

const connections = 400;
/** As many connections as a device may have. */
const ofDevice = 4;
const writtenBytes = 65_536;

const topicOf = (uuid: string) => Buffer.from(`devices/${uuid}/up/state`);
const smallestPublish = (uuid: string, qos: number) => {
  const topic = topicOf(uuid);
  const rest = [0, topic.length, ...topic, ...(qos > 0 ? [0, 1] : [])];
  return [0x30 | (qos << 1), rest.length, ...rest];
};

/** The smallest packet of each type that a client may send, by the device that sends it. */
const smallestPackets: Record<string, (uuid: string) => number[]> = {
  pingreq: () => [0xc0, 0],
  subscribe: () => [0x82, 6, 0, 1, 0, 1, 0x78, 0],
  unsubscribe: () => [0xa2, 5, 0, 1, 0, 1, 0x78],
  'publish-0': (uuid) => smallestPublish(uuid, 0),
  'publish-1': (uuid) => smallestPublish(uuid, 1),
  'publish-2': (uuid) => smallestPublish(uuid, 2),
  pubrel: () => [0x62, 2, 0, 1],
  auth: () => [0xf0, 0],
  connect: () => [...encodeConnect({ clientId: 'x', keepaliveSeconds: 60 })],
};

const upgrade =
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Protocol: mqtt\r\n\r\n';
/** The smallest frames, masked. */
const frames: Record<string, number[]> = {
  empty: [0x82, 0x80, 0, 0, 0, 0],
  byte: [0x82, 0x81, 0, 0, 0, 0, 0xc0],
  ping: [0x89, 0x80, 0, 0, 0, 0],
  fragment: [
    0x02,
    0x80,
    0,
    0,
    0,
    0,
    ...Array.from({ length: 9 }, () => [0, 0x80, 0, 0, 0, 0]).flat(),
  ],
};

type Burst = { port: number; first: Buffer | string; bytes: Buffer };

const repeat = (one: number[]) =>
  Buffer.from(
    Array(Math.ceil(writtenBytes / one.length))
      .fill(one)
      .flat(),
  );

/** Writes without a pause. A closed connection is opened again. */
function write(enemy: Enemy, burst: Burst, signal: AbortSignal): void {
  if (signal.aborted) return;
  const socket = enemy.dial(burst.port).resume();
  enemy.tally.count('opened');
  socket.write(burst.first);
  const go = () => {
    if (signal.aborted || !socket.writable) return;
    enemy.tally.count('bursts');
    socket.write(burst.bytes, () => setImmediate(go));
  };
  go();
  socket.once('close', () => setTimeout(write, 10, enemy, burst, signal).unref());
}

const kindOf = (
  name: string,
  says: string,
  burstsOf: (enemy: Enemy) => Promise<Burst[]>,
): NoisyKind => ({
  name: `bursts-${name}`,
  says: `${connections} connections that write 64 KiB of the smallest ${says} without a pause`,
  livezMs: 300,
  keptMb: 100,
  variables: () => ({ NODE_OPTIONS: '--max-old-space-size=512' }),
  setUp: async (enemy) => {
    const bursts = await burstsOf(enemy);
    return async (signal) => {
      for (let n = 0; n < connections; n += 1)
        write(enemy, bursts[n % bursts.length] as Burst, signal);
      await enough(signal);
    };
  },
});

const loggedIn = (one: (uuid: string) => number[]) => async (enemy: Enemy) => {
  const devices = await registerDevices(enemy, connections / ofDevice);
  return devices.map(({ uuid, token }: EnemyDevice) => ({
    port: enemy.mqttPort,
    first: encodeConnect({ clientId: '', username: uuid, password: token, keepaliveSeconds: 60 }),
    bytes: repeat(one(uuid)),
  }));
};

const stranger = (one: number[]) => async (enemy: Enemy) => [
  { port: enemy.mqttPort, first: '', bytes: repeat(one) },
];
const overWebSocket = (one: number[]) => async (enemy: Enemy) => [
  { port: Number(new URL(enemy.url).port), first: upgrade, bytes: repeat(one) },
];

const packetBursts: NoisyKind[] = [
  ...Object.entries(smallestPackets).map(([name, one]) =>
    kindOf(name, `${name} packets, logged in`, loggedIn(one)),
  ),
  ...Object.entries(smallestPackets).map(([name, one]) =>
    kindOf(`stranger-${name}`, `${name} packets, not logged in`, stranger(one(''))),
  ),
  ...Object.entries(frames).map(([name, one]) =>
    kindOf(`websocket-${name}`, `WebSocket frames: ${name}`, overWebSocket(one)),
  ),
];

/** A user property with empty name and value: nothing is more costly for as many bytes. */
const userProperty = Buffer.from([0x26, 0, 0, 0, 0]);
const propertyBytes = 65_000;

/** A PUBLISH of MQTT 5 with as many properties as fit into it. */
function publishWithProperties(topic: string): Buffer {
  const field = Buffer.alloc(propertyBytes, userProperty);
  // Section 1.5.5: a length of three bytes.
  const length = [
    (propertyBytes & 127) | 128,
    ((propertyBytes >> 7) & 127) | 128,
    propertyBytes >> 14,
  ];
  const payload = Buffer.from('{"sId":"0x1","val":1}');
  return packetOf(0x32, [encodeString(topic), Buffer.from([0, 1, ...length]), field, payload]);
}

const v5Properties: NoisyKind = {
  name: 'v5-properties',
  says: '20 devices that speak MQTT 5 and publish values with 64 KiB of properties, as fast as they can',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const login = { clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 };
        const packet = publishWithProperties(`devices/${uuid}/up/measurements`);
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(encodeConnect({ ...login, version: 5 }));
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('packets', 1);
          if (!socket.write(packet))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};

/** 200 SUBSCRIBE packets of 16 filters in one write. Each causes profile, state and configuration to be sent. */
const subscribesAWrite = 200;

const subscribeStorm: NoisyKind = {
  name: 'subscribe-storm',
  says: '20 devices that subscribe to everything again and again',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const topics = ['#', 'profile', 'configuration', 'state', 'display', 'errors', '+', 'x'];
        const filters = topics.map((topic) => `devices/${uuid}/down/${topic}`);
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        while (!socket.destroyed && !signal.aborted) {
          const packets = Array.from({ length: subscribesAWrite }, (_, n) =>
            encodeSubscribe(n + 1, filters, 1),
          );
          enemy.tally.count('subscribed', subscribesAWrite);
          if (!socket.write(Buffer.concat(packets)))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};

const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, {
        actions: { display: { showText: 'x'.repeat(1_000) }, engine: { gotoStId: 3 - stId } },
      }),
    ],
  })),
};

/** Three connections of each device read nothing; the fourth sends what makes the service send them messages. */
const slowReader: NoisyKind = {
  name: 'slow-reader',
  says: '20 devices on 60 connections that never read what they are sent, 1 kB a measurement',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return async (signal) => {
      for (const { uuid, token } of devices) {
        for (let n = 0; n < 3; n++) {
          const socket = enemy.dial(enemy.mqttPort).pause();
          const clientId = `${uuid}-${n}`;
          socket.write(
            Buffer.concat([
              encodeConnect({ clientId, username: uuid, password: token, keepaliveSeconds: 600 }),
              encodeSubscribe(1, [`devices/${uuid}/down/#`], 1),
            ]),
          );
        }
      }
      await flood(enemy, { devices, payload: (device) => readings(device, 20) }, signal);
    };
  },
};

/** MQTT 3.1.1, section 3.1.2: user name, password, a will of QoS 1, and a clean session. */
const flags = 0x80 | 0x40 | 0x08 | 0x04 | 0x02;
/** Small enough for a packet before the login. */
const readingsAWill = 60;

const wills: NoisyKind = {
  name: 'wills',
  says: '32 loops in which devices connect with a will of 60 measurements and are cut off',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 16);
    const readings = createReadings();
    return (signal) =>
      work(32, signal, async (worker) => {
        const n = worker % devices.length;
        const { uuid = '', token = '' } = devices[n] ?? {};
        const will = [`devices/${uuid}/up/measurements`, readings(n, readingsAWill)];
        const socket = enemy.dial(enemy.mqttPort);
        const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
        const header = Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, 4, flags, 0, 60]);
        const fields = [uuid, ...will, uuid, token].map(encodeString);
        socket.write(packetOf(0x10, [header, ...fields]));
        await answered.catch(() => undefined);
        enemy.tally.count('answered');
        socket.resetAndDestroy();
      });
  },
};

/** MQTT packets: large, small, odd, without a pause, and never read. */
export const packetKinds: NoisyKind[] = [
  bigPayloads,
  largePackets,
  oddPackets,
  ...packetBursts,
  v5Properties,
  subscribeStorm,
  slowReader,
  wills,
];
