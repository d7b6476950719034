import defaults from '../../config/default.ts';
import { registerAccount, registerDevices } from '../api.ts';
import type { BenchContext, Row } from '../bench-context.ts';
import { withClient } from '../database.ts';
import { fillEvents } from '../history.ts';
import { connections, requestOnce } from '../http-load.ts';
import { measureFor } from '../measure.ts';
import { startContender, type Program } from '../program.ts';
import { interleave, type Contender } from '../rounds.ts';
import { startBenchService } from '../service.ts';

/** The newest events of one of 1,000 devices, compared with the statement alone through the same pool. */
export const events: Row = {
  name: 'events',
  async run(context) {
    const { options, database } = context;
    const databaseUrl = await database.create('events');
    const service = await startBenchService({ databaseUrl, redisUrl: context.redisUrl });
    context.defer(() => service.stop());
    const { token } = await registerAccount(service.baseUrl);
    const devices = await registerDevices(service.baseUrl, token, options.devices);
    context.tell(`  storing ${options.storedEvents} events`);
    const deviceIds = await withClient(databaseUrl, (client) => fillEvents(client, options));
    const ours: Contender = {
      name: 'Sensorium',
      turn: () =>
        requestOnce({
          ...options,
          baseUrl: service.baseUrl,
          token,
          paths: devices.map(({ uuid }) => `/v2/events/${uuid}`),
          watched: { server: [service.pid], database: database.pid },
        }),
    };
    const bare = sqlContender(context, databaseUrl, deviceIds);
    return {
      row: 'events',
      work: `GET /v2/events/{uuid} over ${options.storedEvents} events, ${connections} connections`,
      rounds: await interleave([ours, bare], options.rounds, context.tell),
      comparisons: [
        {
          metric: 'requestsPerSecond',
          ours: ours.name,
          beside: bare.name,
          bound: 'at least',
          target: 0.35,
        },
      ],
      notes: [],
    };
  },
};

function sqlContender(
  { options, database }: BenchContext,
  databaseUrl: string,
  deviceIds: number[],
): Contender {
  const pool = String(defaults.database.maxConnections);
  return {
    name: 'the SQL alone',
    async turn() {
      const program = await startContender('sql.ts', [databaseUrl, pool, String(connections)]);
      const watched = { server: [program.pid], database: database.pid };
      try {
        await program.ask(`devices ${deviceIds.join(' ')}`);
        await program.ask('start');
        await measureFor(options.warmupSeconds, watched, () => ({}));
        return await measureFor(options.seconds, watched, async () => ({
          requestsPerSecond: await askAnswered(program),
        }));
      } finally {
        await program.stop();
      }
    },
  };
}

async function askAnswered(program: Program): Promise<number> {
  return (JSON.parse(await program.ask('?')) as { answered: number }).answered;
}
