import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { memoryOf } from '../test/support/processes.ts';
import { installProfile, registerAccount, registerDevices, type RegisteredDevice } from './api.ts';
import { startBenchDatabase } from './database.ts';
import { describeMachine } from './machine.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';
import { startBenchService } from './service.ts';
import { cpuMsOf } from './usage.ts';

const usage = `Usage: npx node bench/polls.ts [--devices 10000]

--devices devices wait with GET /devices/{uuid}/down, each on its own connection. Prints how much memory the service's
process uses before and meanwhile, and how long it takes until a profile installed on all devices has reached them.`;

/** By default the service accepts 2,000 connections of one address. */
const perAddress = 1_500;
const atOnce = 100;

type Poller = { socket: Socket; answered: () => Promise<string> };

await main(
  readOptionsOrExit(usage, { devices: { type: 'string' } }, ({ devices }) =>
    numberOf('devices', devices, 10_000),
  ),
);

async function main(count: number): Promise<void> {
  const releases = createReleases();
  try {
    const database = await startBenchDatabase(60);
    releases.defer(() => database.remove());
    const service = await startBenchService({
      databaseUrl: await database.create('polls'),
      redisUrl: null,
    });
    releases.defer(() => service.stop());
    const account = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, account.token, count);
    await delay(10_000);
    const memory = () => Math.round((memoryOf(service.pid, 'VmRSS') ?? 0) / 1e6);
    const idle = memory();
    const { port } = new URL(service.baseUrl);
    const pollers: Poller[] = [];
    releases.defer(async () => {
      for (const { socket } of pollers) socket.destroy();
    });
    const answers = await inGroups(devices, async (device, place) => {
      const poller = await open(Number(port), place);
      pollers.push(poller);
      const { after } = await ask(poller, device, '');
      return { device, answered: ask(poller, device, `wait=60&after=${after}`) };
    });
    await delay(5_000);
    const waiting = memory();
    const cpuMs = cpuMsOf(service.pid);
    await delay(5_000);
    const idleCpuMs = cpuMsOf(service.pid) - cpuMs;
    const installing = installProfile(service.baseUrl, account.token, devices);
    const firstMs = await Promise.race(
      answers.map(({ answered }) => answered.then(() => performance.now())),
    );
    await Promise.all(answers.map(({ answered }) => answered));
    const lastMs = performance.now();
    await installing;
    console.log(describeMachine(database.description));
    console.log(
      JSON.stringify({
        devices: count,
        idleMb: idle,
        waitingMb: waiting,
        moreMb: waiting - idle,
        toldMb: memory(),
        mostMb: Math.round((memoryOf(service.pid, 'VmHWM') ?? 0) / 1e6),
        cpuMsInFiveSeconds: Math.round(idleCpuMs),
        allToldWithinMs: Math.round(lastMs - firstMs),
      }),
    );
  } finally {
    await releases.downTo(0);
  }
}

/** In order, a group at a time. */
async function inGroups<T, R>(items: T[], does: (item: T, place: number) => Promise<R>) {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    const some = items.slice(from, from + atOnce);
    results.push(...(await Promise.all(some.map((item, place) => does(item, from + place)))));
  }
  return results;
}

async function open(port: number, place: number): Promise<Poller> {
  const localAddress = `127.0.0.${2 + Math.floor(place / perAddress)}`;
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  await once(socket, 'connect');
  let said = '';
  let tell = (_body: string): void => undefined;
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString();
    const [head = '', body] = said.split('\r\n\r\n', 2);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    if (body === undefined || Buffer.byteLength(body) < length) return;
    said = '';
    tell(body);
  });
  return { socket, answered: () => new Promise((resolve) => (tell = resolve)) };
}

async function ask({ socket, answered }: Poller, { uuid, token }: RegisteredDevice, query: string) {
  const body = answered();
  socket.write(
    `GET /devices/${uuid}/down?${query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  );
  return JSON.parse(await body) as { after: string; messages: { topic: string }[] };
}
