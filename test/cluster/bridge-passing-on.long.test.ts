import { chmodSync, existsSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../faults/service-process.ts';
import { faultsOf, judge, noFaults } from '../faults/verdict.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts';
import type { Mosquitto } from '../support/mosquitto.ts';
import { hasRedis } from '../support/redis.ts';
import { bridgeTo, findHolder } from './broker.ts';
import { startWays } from './ways.ts';
import type { Ways } from './ways.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

const hasProc = existsSync('/proc/self/net/tcp');

describe.skipIf(!hasMosquitto || !hasRedis || !hasProc)('two processes that stand by', () => {
  const dir = makeTemporaryDir();
  let broker: Mosquitto;
  let ways: Ways;
  let installation: Installation;

  beforeAll(async () => {
    chmodSync(dir, 0o777);
    broker = await startMosquitto([
      'allow_anonymous true',
      'use_username_as_clientid true',
      'max_queued_messages 0',
      'max_inflight_messages 0',
    ]);
    ways = await startWays(broker.port);
    const reached = { port: broker.port, url: `mqtt://127.0.0.1:${ways.port}` };
    installation = await startInstallation({
      apis: 1,
      connectors: [bridgeTo(reached, 2, null)],
      standBys: [2],
    });
  });
  afterAll(async () => {
    await installation.close();
    await ways.close();
    await broker.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  const readDegraded = async () => {
    const answer = await fetch(`${(installation.apis[0] as ServiceProcess).url}/v2/status`);
    return ((await answer.json()) as { degraded: string[] }).degraded;
  };

  it('pass the lease on when its holder loses the broker, and lose nothing', async () => {
    const devices = 40;
    const witnessed = await installation.startLoad({ port: broker.port, devices, rate: 300 });
    const { load, cluster } = witnessed;
    load.start();
    const runFor = async (acknowledgements: number) => {
      const goal = load.counts().acknowledged + acknowledgements;
      while (load.counts().acknowledged < goal) await load.nextAck();
    };
    const holder = async () => (await findHolder(cluster.url()))?.process ?? 0;
    await runFor(200);
    expect(await readDegraded()).toEqual([]);
    const first = await holder();
    ways.closeFor(first);
    const cutMs = performance.now();
    await expect
      .poll(async () => ![0, first].includes(await holder()), { interval: 50, timeout: 60_000 })
      .toBe(true);
    expect(performance.now() - cutMs).toBeLessThan(10_000);
    await expect.poll(readDegraded, { timeout: 60_000 }).toEqual([]);
    await runFor(200);
    const second = await holder();
    expect(second).not.toBe(first);
    ways.openAgain();
    await runFor(200);
    expect(await holder()).toBe(second);
    expect(await load.stop(60_000)).toBe(true);
    await expect
      .poll(async () => (await judge(witnessed)).lost, { interval: 200, timeout: 60_000 })
      .toBe(0);
    expect(faultsOf(await judge(witnessed))).toEqual(noFaults);
  });

  it('are degraded at the API process when both are killed, and well again with one', async () => {
    const [one, other] = installation.connectors as [ServiceProcess, ServiceProcess];
    await Promise.all([one.kill(), other.kill()]);
    await expect.poll(readDegraded, { timeout: 40_000 }).toEqual(['bridge:broker-2']);
    await one.start();
    await expect.poll(readDegraded, { timeout: 60_000 }).toEqual([]);
  });
});
