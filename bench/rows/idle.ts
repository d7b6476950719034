import { setTimeout as delay } from 'node:timers/promises';
import { registerAccount, registerDevices } from '../api.ts';
import type { BenchContext, Row } from '../bench-context.ts';
import { createFleet, type DeviceSpec } from '../client/fleet.ts';
import { anonymousSpecs, specsOf } from '../fleets.ts';
import { startContender } from '../program.ts';
import { interleave, type Contender, type Metrics } from '../rounds.ts';
import { startBenchService } from '../service.ts';
import { memoryOf } from '../../test/support/processes.ts';
import { cpuMsOf } from '../usage.ts';

/** A few connections before the baseline, so that code and buffers do not count as connections. */
const rehearsals = 50;

/** 10,000 devices that connect at once to a newly started process, then idle. */
export const idle: Row = {
  name: 'idle',
  async run(context) {
    const count = context.options.idleDevices;
    const contenders = [await serviceIdle(context, count), aedesIdle(context, count)];
    const [ours = '', beside = ''] = contenders.map(({ name }) => name);
    return {
      row: 'idle',
      work: `${count} devices connect at once to a fresh process (at most 500 handshakes under way), then stay idle`,
      rounds: await interleave(contenders, context.options.rounds, context.tell),
      comparisons: [
        { metric: 'connectsPerSecond', ours, beside, bound: 'at least', target: 0.7 },
        { metric: 'bytesPerConnection', ours, beside, bound: 'at most', target: 1.3 },
      ],
      notes: [],
    };
  },
};

async function serviceIdle(context: BenchContext, count: number): Promise<Contender> {
  const databaseUrl = await context.database.create('idle');
  const start = () => startBenchService({ databaseUrl, redisUrl: context.redisUrl });
  const first = await start();
  const { token } = await registerAccount(first.baseUrl);
  const devices = specsOf(await registerDevices(first.baseUrl, token, count));
  await first.stop();
  return {
    name: 'Sensorium',
    async turn() {
      const service = await start();
      try {
        return await connectAll(context, service.pid, service.mqttPort, devices);
      } finally {
        await service.stop();
      }
    },
  };
}

function aedesIdle(context: BenchContext, count: number): Contender {
  const devices = anonymousSpecs(count);
  return {
    name: 'bare aedes',
    async turn() {
      const broker = await startContender('aedes.ts');
      try {
        return await connectAll(context, broker.pid, Number(broker.ready['port']), devices);
      } finally {
        await broker.stop();
      }
    },
  };
}

async function connectAll(
  { options, database }: BenchContext,
  pid: number,
  port: number,
  devices: DeviceSpec[],
): Promise<Metrics> {
  const rehearsal = fleetOf(port, devices.slice(0, rehearsals));
  await rehearsal.connect();
  await rehearsal.close();
  const emptyBytes = await settledBytes(pid, options.settleSeconds);
  const fleet = fleetOf(port, devices);
  try {
    const before = {
      server: cpuMsOf(pid),
      database: cpuMsOf(database.pid),
      us: process.cpuUsage(),
    };
    const startMs = performance.now();
    await fleet.connect();
    const elapsedMs = performance.now() - startMs;
    const client = process.cpuUsage(before.us);
    return {
      connectsPerSecond: (devices.length / elapsedMs) * 1_000,
      clientCores: (client.user + client.system) / 1_000 / elapsedMs,
      serverCores: (cpuMsOf(pid) - before.server) / elapsedMs,
      databaseCores: (cpuMsOf(database.pid) - before.database) / elapsedMs,
      bytesPerConnection:
        ((await settledBytes(pid, options.settleSeconds)) - emptyBytes) / devices.length,
    };
  } finally {
    await fleet.close();
  }
}

function fleetOf(port: number, devices: DeviceSpec[]) {
  return createFleet({ host: '127.0.0.1', port, devices, payload: () => null });
}

/** The least resident memory while the process has nothing to do. */
async function settledBytes(pid: number, seconds: number): Promise<number> {
  const looks: number[] = [];
  for (let look = 0; look < 10; look += 1) {
    await delay(seconds * 100);
    looks.push(memoryOf(pid, 'VmRSS') ?? 0);
  }
  return Math.min(...looks);
}
