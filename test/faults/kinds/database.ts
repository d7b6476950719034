import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runOn } from '../../support/template.ts';
import {
  ask,
  expectHolds,
  runFor,
  runForAll,
  settleMemory,
  timeToAck,
  watchMemory,
} from '../fault.ts';
import type { Fault, Observations } from '../fault.ts';
import type { Proxy } from '../proxy.ts';
import type { World } from '../world.ts';

/** The database server crashes; the service stays and continues. */
function crash(name: string, promise: string, happen: (world: World) => Promise<void>): Fault {
  return {
    name,
    promise,
    losesOutcomes: true,
    short: { times: 2, awaySeconds: 0 },
    long: { times: 20, awaySeconds: 0 },
    async inflict(world, { times }) {
      const pid = world.service.pid();
      let slowest = 0;
      for (let time = 0; time < times; time++) {
        await runFor(world, 500);
        await happen(world);
        slowest = Math.max(slowest, await timeToAck(world));
      }
      expectHolds(
        world.service.pid() === pid && world.service.isRunning(),
        'the process keeps running',
      );
      return { times, 'slowest next ack ms': slowest };
    },
  };
}

const stays =
  'nothing is acknowledged without a row; unknown outcomes are retried without duplicates; the process keeps running';

export const databaseKilled = crash('postgres-kill9', stays, async ({ cluster }) => {
  const pid = cluster.pid();
  process.kill(pid, 'SIGKILL');
  // It can start again only when its children have detached from the shared memory.
  while (!(await starts(cluster.start))) await delay(100);
});

export const databaseRestarted = crash('postgres-restart', stays, async ({ cluster }) => {
  await cluster.halt('fast');
  await cluster.start();
});

export const connectionsTerminated = crash('terminate-backends', stays, async ({ cluster }) => {
  await runOn(cluster.url(), (client) =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    ),
  );
});

async function starts(start: () => Promise<void>): Promise<boolean> {
  return start().then(
    () => true,
    () => false,
  );
}

/** The database does not answer for a while. Nothing may be acknowledged, and little remembered. */
function away(
  name: string,
  leave: (world: World) => Promise<void> | void,
  comeBack: (world: World) => Promise<void> | void,
): Fault {
  return {
    name,
    promise:
      'nothing is acknowledged, memory is bounded, REST answers 503 in under 2 s, and what waited is stored within 60 s',
    losesOutcomes: true,
    limits: { 'grown MB': 99, 'REST 503 ms': 2_000, drainedMs: 60_000 },
    short: { times: 1, awaySeconds: 4 },
    long: { times: 1, awaySeconds: 60 },
    async inflict(world, { awaySeconds }) {
      await runForAll(world);
      // The short form checks that it works, the long one what it costs.
      if (awaySeconds >= 30) await settleMemory(world, 10);
      await leave(world);
      // Acknowledgements of earlier commits may still arrive.
      await delay(500);
      const acknowledgedBefore = world.load.counts().acknowledged;
      const answer = await ask(world, '/v2/devices');
      const grownMb = await watchMemory(world, awaySeconds);
      const acknowledged = world.load.counts().acknowledged - acknowledgedBefore;
      await comeBack(world);
      const nextAckMs = await timeToAck(world);
      expectHolds(answer.status === 503, `REST answers 503, got ${answer.status}`);
      expectHolds(acknowledged === 0, `no acknowledgement while away, got ${acknowledged}`);
      const seen: Observations = { awaySeconds, 'grown MB': grownMb, 'REST 503 ms': answer.ms };
      return { ...seen, 'next ack ms': nextAckMs };
    },
  };
}

export const databaseStopped = away(
  'postgres-sigstop',
  async ({ cluster }) => signalAll(cluster.pid(), 'SIGSTOP'),
  async ({ cluster }) => signalAll(cluster.pid(), 'SIGCONT'),
);

export const databaseAway = away(
  'postgres-away',
  ({ cluster }) => cluster.halt('immediate'),
  ({ cluster }) => cluster.start(),
);

const throughProxy = { world: { databaseProxy: true } };

export const networkCut: Fault = {
  ...away(
    'network-cut',
    (world) => databaseNetwork(world).cut(),
    (world) => databaseNetwork(world).heal(),
  ),
  ...throughProxy,
};

export const networkStalled: Fault = {
  ...away(
    'network-stalled',
    (world) => databaseNetwork(world).stall(),
    (world) => databaseNetwork(world).heal(),
  ),
  ...throughProxy,
};

/** Throws if the world has no proxy before its database. */
export function databaseNetwork({ databaseProxy }: World): Proxy {
  if (databaseProxy) return databaseProxy;
  throw new Error('This fault is in the network between service and database.');
}

/** Sends a signal to the server and every process it has forked. */
async function signalAll(postmaster: number, signal: NodeJS.Signals): Promise<void> {
  const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8');
  for (const pid of [postmaster, ...children.trim().split(' ').map(Number)]) {
    if (pid > 0) process.kill(pid, signal);
  }
}
