// Streams of packets that are cut anywhere. The result must not depend on where.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { parser, type Packet } from 'mqtt-packet';
import { WebSocket } from 'ws';
import { makeCertificate } from '../support/certificate.ts';
import { startWorld, until, type World } from './harness.ts';
import { connect as connect5, id, join, none, packet, text, userProperty } from './v5-bytes.ts';
import { properties } from './v5-bytes.ts';

export const ways = [
  'tcp',
  'tls',
  'websocket',
  'tcp behind a proxy',
  'tls behind a proxy',
] as const;
export type Way = (typeof ways)[number];

type Step =
  | { kind: 'publish'; qos: 0 | 1 | 2; topic: string; size: number }
  | { kind: 'subscribe' | 'unsubscribe' | 'ping' | 'puback' | 'pubrec' | 'pubrel' | 'pubcomp' };

export type Run = {
  version: 4 | 5;
  way: Way;
  steps: Step[];
  last: 'nothing' | 'disconnect' | 'a wrong packet';
  /** Where to cut, as fractions of the whole stream. */
  cuts: number[];
  /** Whether the reader gets a turn between two pieces. */
  areApart: boolean;
  /** Whether the client waits for its CONNACK. */
  waits: boolean;
};

/** More bytes than any packet but measurements may have. */
export const sizes = { maxPacketBytes: 2_000, maxMeasurementPacketBytes: 9_000 };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
      topic: fc.constantFrom('measurements', 'measurements', 'state', 'nowhere'),
      size: fc.constantFrom(0, 0, 100, 300, 3_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        ...(['subscribe', 'unsubscribe', 'ping', 'puback', 'pubrec', 'pubrel', 'pubcomp'] as const),
      ),
    }),
  },
);

export const run: fc.Arbitrary<Run> = fc.record({
  version: fc.constantFrom(4 as const, 5 as const),
  way: fc.constantFrom(...ways),
  steps: fc.array(step, { minLength: 1, maxLength: 12 }),
  last: fc.constantFrom('nothing' as const, 'disconnect' as const, 'a wrong packet' as const),
  cuts: fc.array(
    fc.noBias(fc.nat(1_000)).map((n) => n / 1_000),
    { maxLength: 8 },
  ),
  areApart: fc.boolean(),
  waits: fc.boolean(),
});

type Device = { uuid: string; token: string };

/** Large packets are measurements, and only where WebSocket is not used, which allows none. */
const sizeOf = ({ topic, size }: Step & { kind: 'publish' }, way: Way) =>
  topic === 'measurements' && way !== 'websocket' ? size : Math.min(size, 300);

function bytesOf(one: Step, n: number, { version, way }: Run, { uuid }: Device): Buffer {
  const isV5 = version === 5;
  const field = isV5 ? (n % 2 ? none : properties(userProperty('a', 'b'))) : '';
  const filter = text(`devices/${uuid}/down/${n}`);
  switch (one.kind) {
    case 'publish': {
      const item = { sId: '0x1', val: n, ts: n + 1, 'x-pad': 'x'.repeat(sizeOf(one, way)) };
      const body = one.topic === 'state' ? { puId: 1, stId: n, ts: n + 1 } : item;
      const messageId = one.qos === 0 ? '' : id(n + 1);
      const topic = text(`devices/${uuid}/up/${one.topic}`);
      return packet(0x30 | (one.qos << 1), topic, messageId, field, JSON.stringify(body));
    }
    case 'subscribe':
      return packet(0x82, id(n + 1), field, filter, 1);
    case 'unsubscribe':
      return packet(0xa2, id(n + 1), field, filter);
    case 'ping':
      return packet(0xc0);
    default: {
      const first = { puback: 0x40, pubrec: 0x50, pubrel: 0x62, pubcomp: 0x70 }[one.kind];
      return packet(first, id(60_000 + n), ...(isV5 && n % 2 ? [0, none] : []));
    }
  }
}

const answers: Partial<Record<Step['kind'], string>> = {
  subscribe: 'suback',
  unsubscribe: 'unsuback',
  ping: 'pingresp',
  pubrel: 'pubcomp',
  pubrec: 'pubrel',
};
const answerOf = (one: Step) =>
  one.kind === 'publish' ? [undefined, 'puback', 'pubrec'][one.qos] : answers[one.kind];

const connectOf = (version: 4 | 5, device: Device): Buffer =>
  version === 5
    ? connect5(device, properties(userProperty('who', 'cares')))
    : packet(
        0x10,
        text('MQTT'),
        4,
        0xc2,
        id(0),
        text('raw'),
        text(device.uuid),
        text(device.token),
      );

/** The pieces of `bytes` between the cuts. */
function cut(bytes: Buffer, cuts: number[]): Buffer[] {
  const places = [...new Set(cuts.map((part) => Math.round(part * bytes.length)))].toSorted(
    (one, other) => one - other,
  );
  const edges = [0, ...places, bytes.length];
  return edges.slice(1).map((to, n) => bytes.subarray(edges[n], to));
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

type Line = { write(piece: Buffer): void; isClosed(): boolean; destroy(): void };

export async function startCuts() {
  const folder = await mkdtemp(joinPath(tmpdir(), 'cuts-'));
  const files = { certFile: joinPath(folder, 'c.crt'), keyFile: joinPath(folder, 'c.key') };
  await makeCertificate('cuts', files);
  const options = {
    limits: { ...sizes, connectsPerSecond: 100_000, refusedLoginsPerSecond: 100_000 },
    tls: { host: '127.0.0.1', port: 0, ...files },
  };
  const direct = await startWorld(options);
  const proxied = await startWorld({ ...options, trustedProxies: ['127.0.0.0/8'] });
  const server = createServer();
  server.on('upgrade', (request, socket, head) =>
    direct.connector.acceptWebSocket(request, socket, head),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let devices = 0;

  const worldOf = (way: Way): World => (way.endsWith('proxy') ? proxied : direct);

  async function open(way: Way, onData: (bytes: Buffer) => void): Promise<Line> {
    if (way === 'websocket') {
      const { port } = server.address() as AddressInfo;
      const socket = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, 'mqtt');
      socket.on('error', () => {});
      let isClosed = false;
      socket.on('close', () => (isClosed = true));
      socket.on('message', (bytes) => onData(bytes as Buffer));
      await once(socket, 'open');
      const write = (piece: Buffer) => socket.send(piece);
      return { write, isClosed: () => isClosed, destroy: () => socket.terminate() };
    }
    const { addresses } = worldOf(way).connector;
    const port = (way.startsWith('tls') ? addresses.tls : addresses.tcp)?.port ?? 0;
    const tcp = connectTcp({ host: '127.0.0.1', port, noDelay: true });
    tcp.on('error', () => {});
    await once(tcp, 'connect');
    let socket: Socket = tcp;
    if (way === 'tls behind a proxy') {
      const header = Buffer.from(header1);
      for (const piece of [header.subarray(0, 9), header.subarray(9)]) {
        tcp.write(piece);
        await turn();
      }
    }
    if (way.startsWith('tls')) {
      socket = connectTls({ socket: tcp, rejectUnauthorized: false });
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
    }
    socket.on('data', onData);
    const line = { write: (piece: Buffer) => void socket.write(piece), isClosed: () => false };
    let isClosed = false;
    socket.on('close', () => (isClosed = true));
    return { ...line, isClosed: () => isClosed, destroy: () => socket.destroy() };
  }

  return {
    /** Sends the stream. Returns what came of it, and what should have. */
    async play(one: Run) {
      const { version, way, steps, last, areApart, waits } = one;
      const { store, connector } = worldOf(way);
      const device = store.addDevice((devices += 1), devices);
      const { deviceId } = device.identity;
      store.beforeAuthenticated = areApart ? async () => void (await turn()) : async () => {};
      const replies: string[] = [];
      const replyParser = parser({ protocolVersion: version });
      replyParser.on('packet', ({ cmd }: Packet) => replies.push(cmd));
      const line = await open(way, (bytes) => replyParser.parse(bytes));
      const header = way === 'tcp behind a proxy' ? Buffer.from(header1) : Buffer.alloc(0);
      const login = join(header, connectOf(version, device));
      const rest = join(
        ...steps.map((step, n) => bytesOf(step, n, one, device)),
        ...(last === 'disconnect' ? [packet(0xe0)] : []),
        // A SUBACK, which only servers send.
        ...(last === 'a wrong packet' ? [packet(0x90, id(1), 0), packet(0xc0)] : []),
      );
      const send = async (bytes: Buffer) => {
        for (const piece of cut(bytes, one.cuts)) {
          line.write(piece);
          if (areApart) for (let n = 0; n < 3; n += 1) await turn();
        }
      };
      if (waits) {
        await send(login);
        await until(
          () => replies.length > 0 || line.isClosed(),
          `a CONNACK, ${JSON.stringify(one)}`,
        );
        await send(rest);
      } else await send(join(login, rest));
      const expected = ['connack', ...steps.flatMap((step) => answerOf(step) ?? [])];
      const sent = steps.flatMap((step, n) =>
        step.kind === 'publish' ? [`${step.topic} ${n}`] : [],
      );
      const stored = () =>
        store.stored.flatMap(({ device: { deviceId: by }, uplink }) =>
          by === deviceId ? [`${uplink.topic.split('/')[3]} ${numberOf(uplink.content)}`] : [],
        );
      const isOver = () =>
        last === 'nothing' ? replies.length >= expected.length : line.isClosed();
      await until(isOver, `the end of ${JSON.stringify(one)}`);
      await until(() => stored().length >= sent.length, `${sent.length} of ${JSON.stringify(one)}`);
      const isClosed = line.isClosed();
      const result = { replies: replies.toSorted(), stored: stored(), isClosed };
      line.destroy();
      store.stored.length = 0;
      await until(() => connector.snapshot().connections === 0);
      return {
        result,
        expected: {
          // Answers sent just before the end may be lost with the connection.
          replies: last === 'nothing' ? expected.toSorted() : result.replies,
          stored: sent.map((name) => (name.startsWith('nowhere') ? 'nowhere -1' : name)),
          isClosed: last !== 'nothing',
        },
      };
    },

    async close(): Promise<void> {
      server.close();
      await direct.close();
      await proxied.close();
      await rm(folder, { recursive: true });
    },
  };
}

const header1 = 'PROXY TCP4 203.0.113.7 127.0.0.1 51000 1883\r\n';

function numberOf(content: World['store']['stored'][number]['uplink']['content']): number {
  if (content.kind === 'measurements') return content.items[0]?.value.val as number;
  return content.kind === 'state' ? content.report.stId : -1;
}
