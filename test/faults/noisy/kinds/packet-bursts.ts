import { encodeConnect } from '../../../../bench/client/packets.ts';
import { registerDevices, type EnemyDevice } from '../devices.ts';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { enough } from '../workers.ts';

const connections = 400;
/** As many connections as a device may have. */
const ofDevice = 4;
const writtenBytes = 65_536;

const topicOf = (uuid: string) => Buffer.from(`devices/${uuid}/up/state`);
const publish = (uuid: string, qos: number) => {
  const topic = topicOf(uuid);
  const rest = [0, topic.length, ...topic, ...(qos > 0 ? [0, 1] : [])];
  return [0x30 | (qos << 1), rest.length, ...rest];
};

/** The smallest packet of each type that a client may send, by the device that sends it. */
const packets: Record<string, (uuid: string) => number[]> = {
  pingreq: () => [0xc0, 0],
  subscribe: () => [0x82, 6, 0, 1, 0, 1, 0x78, 0],
  unsubscribe: () => [0xa2, 5, 0, 1, 0, 1, 0x78],
  'publish-0': (uuid) => publish(uuid, 0),
  'publish-1': (uuid) => publish(uuid, 1),
  'publish-2': (uuid) => publish(uuid, 2),
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

/** Writes without a pause; what is closed is opened anew. */
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

export const packetBursts: NoisyKind[] = [
  ...Object.entries(packets).map(([name, one]) =>
    kindOf(name, `${name} packets, logged in`, loggedIn(one)),
  ),
  ...Object.entries(packets).map(([name, one]) =>
    kindOf(`stranger-${name}`, `${name} packets, not logged in`, stranger(one(''))),
  ),
  ...Object.entries(frames).map(([name, one]) =>
    kindOf(`websocket-${name}`, `WebSocket frames: ${name}`, overWebSocket(one)),
  ),
];
