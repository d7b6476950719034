import { registerAccount, registerDevices } from '../api.ts';
import type { BenchContext, Row } from '../bench-context.ts';
import { postOnce } from '../post-load.ts';
import { startContender } from '../program.ts';
import { interleave } from '../rounds.ts';
import { startBenchService } from '../service.ts';

const connections = 100;

/** One value per request over kept connections, compared with a bare Koa that stores nothing. */
export const uplink: Row = {
  name: 'uplink',
  async run(context: BenchContext) {
    const { seconds, warmupSeconds, rounds } = context.options;
    const databaseUrl = await context.database.create('uplink');
    const service = await startBenchService({ databaseUrl, redisUrl: context.redisUrl });
    context.defer(() => service.stop());
    const account = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, account.token, connections);
    const koa = await startContender('koa-uplink.ts');
    context.defer(() => koa.stop());
    const database = context.database.pid;
    const turn = (port: number, pid: number) => () =>
      postOnce({ port, devices, seconds, warmupSeconds, watched: { server: [pid], database } });
    const contenders = [
      { name: 'Sensorium', turn: turn(Number(new URL(service.baseUrl).port), service.pid) },
      { name: 'bare Koa', turn: turn(Number(koa.ready['port']), koa.pid) },
    ];
    return {
      row: 'uplink',
      work: `POST /devices/{uuid}/up/measurements, one value each, ${connections} connections`,
      rounds: await interleave(contenders, rounds, context.tell),
      comparisons: [
        {
          metric: 'answersPerCpuSecond',
          ours: 'Sensorium',
          beside: 'bare Koa',
          bound: 'at least',
          target: 0.45,
        },
      ],
      notes: [],
    };
  },
};
