import { setTimeout as delay } from 'node:timers/promises';
import { runOn } from '../../support/template.ts';
import { expectHolds, runFor } from '../fault.ts';
import type { Fault } from '../fault.ts';
import type { World } from '../world.ts';

const churnEveryMs = 2_000;

/** No fault except devices that reconnect. Memory, handles and connections stay constant. */
export const soak: Fault = {
  name: 'soak',
  promise: 'memory, handles and connections do not grow',
  longOnly: true,
  short: { times: 1, awaySeconds: 10 },
  long: { times: 1, awaySeconds: 1_200 },
  async inflict(world, { awaySeconds }) {
    await runFor(world, 1_000);
    const samples: Sample[] = [];
    const untilMs = performance.now() + awaySeconds * 1_000;
    while (performance.now() < untilMs) {
      await world.load.cut(0.1);
      await delay(churnEveryMs);
      samples.push(await sample(world));
    }
    // The first tenth fills caches; the rest must not grow.
    const settled = samples.slice(Math.ceil(samples.length / 10));
    const quarter = Math.max(1, Math.floor(settled.length / 4));
    const early = average(settled.slice(0, quarter));
    const late = average(settled.slice(-quarter));
    expectHolds(late.mb < early.mb * 1.2 + 20, `memory flat, ${early.mb} to ${late.mb} MB`);
    expectHolds(late.handles < early.handles * 1.2 + 20, 'handles do not grow');
    expectHolds(late.connections <= early.connections + 2, 'database connections do not grow');
    return {
      seconds: awaySeconds,
      'MB early': early.mb,
      'MB late': late.mb,
      'handles early': early.handles,
      'handles late': late.handles,
      'database connections': late.connections,
    };
  },
};

type Sample = { mb: number; handles: number; connections: number };

async function sample({ service, cluster }: World): Promise<Sample> {
  const { rows } = await runOn(cluster.url(), (client) =>
    client.query<{ count: string }>(
      `select count(*) from pg_stat_activity where backend_type = 'client backend'`,
    ),
  );
  return {
    mb: service.residentBytes() / 1_048_576,
    handles: service.openHandles(),
    connections: Number(rows[0]?.count),
  };
}

function average(samples: Sample[]): Sample {
  const mean = (pick: (sample: Sample) => number) =>
    Math.round(samples.reduce((sum, each) => sum + pick(each), 0) / samples.length);
  return {
    mb: mean(({ mb }) => mb),
    handles: mean(({ handles }) => handles),
    connections: mean(({ connections }) => connections),
  };
}
