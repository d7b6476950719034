import { registerAccount, registerDevices } from '../api.ts';
import type { BenchContext, Row } from '../bench-context.ts';
import { connections, requestOnce } from '../http-load.ts';
import { startContender } from '../program.ts';
import { interleave } from '../rounds.ts';
import { startBenchService } from '../service.ts';

/** An authenticated GET of a configuration, compared with a bare Koa route that returns the same bytes. */
export const configuration: Row = {
  name: 'configuration',
  async run(context: BenchContext) {
    const { seconds, warmupSeconds, rounds } = context.options;
    const databaseUrl = await context.database.create('configuration');
    const service = await startBenchService({ databaseUrl, redisUrl: context.redisUrl });
    context.defer(() => service.stop());
    const { token } = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, token, 100);
    const paths = devices.map(({ uuid }) => `/v2/devices/${uuid}/configuration`);
    const answer = await fetch(`${service.baseUrl}${paths[0]}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    const koa = await startContender('koa.ts', [], await answer.text());
    context.defer(() => koa.stop());
    const load = { paths, token, seconds, warmupSeconds };
    const database = context.database.pid;
    const contenders = [
      {
        name: 'Sensorium',
        turn: () =>
          requestOnce({
            ...load,
            baseUrl: service.baseUrl,
            watched: { server: [service.pid], database },
          }),
      },
      {
        name: 'bare Koa',
        turn: () =>
          requestOnce({
            ...load,
            baseUrl: `http://127.0.0.1:${String(koa.ready['port'])}`,
            watched: { server: [koa.pid], database },
          }),
      },
    ];
    return {
      row: 'configuration',
      work: `GET /v2/devices/{uuid}/configuration, authenticated, ${connections} connections`,
      rounds: await interleave(contenders, rounds, context.tell),
      comparisons: [
        {
          metric: 'requestsPerSecond',
          ours: 'Sensorium',
          beside: 'bare Koa',
          bound: 'at least',
          target: 0.35,
        },
      ],
      notes: [],
    };
  },
};
