import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { generate } from 'mqtt-packet';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startFlags } from '../support/start-command.ts';
import { publishPacket } from './raw.ts';
import type { Command, Report } from './serve.ts';

/** For larger runs, by hand: CONNECTOR_DEVICES=8000. */
const devices = Number(process.env['CONNECTOR_DEVICES'] ?? 1_000);
const megabyte = 1_048_576;
const execArgv = startFlags();

let child: ChildProcess;
let port: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  const script = fileURLToPath(new URL('serve.ts', import.meta.url));
  child = fork(script, [String(devices)], { execArgv, stdio: 'inherit' });
  const [told] = (await once(child, 'message')) as [{ port: number }];
  port = told.port;
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
});

async function ask(kind: Command['kind']): Promise<Report> {
  const answered = once(child, 'message');
  child.send({ kind });
  const [report] = (await answered) as [Report];
  return report;
}

async function reportsUntil(condition: (report: Report) => boolean): Promise<Report> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    const report = await ask('report');
    if (condition(report)) return report;
    if (performance.now() > endMs) throw new Error(`in vain: ${JSON.stringify(report)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const uuidOf = (n: number) => `00000000-0000-4000-8abc-${String(n).padStart(12, '0')}`;

async function enter(n: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  sockets.push(socket);
  const password = Buffer.from(`token-of-${n}-`.padEnd(40, 'x'));
  const clientId = 'x';
  socket.write(
    generate({ cmd: 'connect', clientId, username: uuidOf(n), password, keepalive: 60 }),
  );
  const [connack] = (await once(socket, 'data')) as [Buffer];
  expect(connack[3]).toBe(0);
  return socket;
}

test('many devices that send while nothing is stored cost little, and lose nothing', async () => {
  const clients: Socket[] = [];
  for (let n = 1; n <= devices; n += 100)
    clients.push(...(await Promise.all(Array.from({ length: 100 }, (_, m) => enter(n + m)))));
  await ask('hold');
  const before = await ask('report');
  const perDevice = 30;
  const acks = clients.map((socket, index) => {
    const topic = `devices/${uuidOf(index + 1)}/up/measurements`;
    for (let m = 1; m <= perDevice; m++) {
      const payload = [{ sId: '0x1', val: m, ts: 1 }];
      socket.write(generate(publishPacket(topic, payload, { qos: 1, messageId: m })));
    }
    return countAcks(socket, perDevice);
  });
  // The budget of all together, 32 MiB, is let in.
  const during = await reportsUntil(({ held }) => held >= Math.min(devices * perDevice, 10_000));
  expect(during.rss - before.rss).toBeLessThan(100 * megabyte);
  await ask('release');
  await Promise.all(acks);
  const after = await ask('report');
  expect(after).toMatchObject({ stored: devices * perDevice, connections: devices });
});

function countAcks(socket: Socket, count: number): Promise<void> {
  let bytes = 0;
  return new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes >= count * 4) resolve();
    });
  });
}

test('devices that flood without reading are slowed down', async () => {
  const clients = await Promise.all(Array.from({ length: 100 }, (_, n) => enter(n + 1)));
  await ask('hold');
  const before = await ask('report');
  for (const [index, socket] of clients.entries()) {
    const topic = `devices/${uuidOf(index + 1)}/up/measurements`;
    const payload = 'x'.repeat(50_000);
    for (let m = 1; m <= 40; m++) socket.write(generate(publishPacket(topic, payload)));
  }
  // Each has sent 2 MB, most of which the kernel holds.
  const during = await reportsUntil(({ held }) => held >= 100);
  expect(during.held).toBeLessThan(2_000);
  expect(during.rss - before.rss).toBeLessThan(100 * megabyte);
});
