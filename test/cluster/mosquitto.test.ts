import { chmodSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsOf, judge } from '../faults/verdict.ts';
import type { Verdict, Witnessed } from '../faults/verdict.ts';
import { makeTemporaryDir } from '../harness/cluster.ts';
import { hasMosquitto, startMosquitto } from '../harness/mosquitto.ts';
import type { Mosquitto } from '../harness/mosquitto.ts';
import { hasRedis } from '../harness/redis.ts';
import { bridgeTo } from './broker.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

const nothing = {
  lost: 0,
  invented: 0,
  doubled: 0,
  reordered: 0,
  wrongEvents: 0,
  restDiffers: 0,
};

/** What a broker has to be told so that it keeps what it has acknowledged. */
const keeping = (dir: string) => [
  'allow_anonymous true',
  'use_username_as_clientid true',
  'persistence true',
  `persistence_location ${dir}/`,
  'autosave_interval 1',
  'max_queued_messages 0',
  'max_inflight_messages 0',
];

describe.skipIf(!hasMosquitto || !hasRedis)('devices behind Mosquitto, under load', () => {
  const dir = makeTemporaryDir();
  let broker: Mosquitto;
  let installation: Installation;

  beforeAll(async () => {
    chmodSync(dir, 0o777);
    broker = await startMosquitto(keeping(dir));
    installation = await startInstallation({
      apis: 1,
      connectors: [bridgeTo(broker, 2, null), bridgeTo(broker, 3), bridgeTo(broker, 4)],
      startLater: [3, 4],
    });
  }, 120_000);
  afterAll(async () => {
    await installation.close();
    await broker.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  async function runFor({ load }: Witnessed, acknowledgements: number): Promise<void> {
    const goal = load.counts().acknowledged + acknowledgements;
    while (load.counts().acknowledged < goal) await load.nextAck();
  }

  /** The broker acknowledges before we have stored: what it still holds is waited for. */
  async function settle(witnessed: Witnessed): Promise<Verdict> {
    expect(await witnessed.load.stop(60_000)).toBe(true);
    let verdict = await judge(witnessed);
    await expect
      .poll(
        async () => {
          const before = verdict.stored;
          verdict = await judge(witnessed);
          return verdict.stored === before;
        },
        { interval: 1_500, timeout: 60_000 },
      )
      .toBe(true);
    return verdict;
  }

  const startLoad = async () => {
    const witnessed = await installation.startLoad({ port: broker.port, devices: 60, rate: 600 });
    witnessed.load.start();
    return witnessed;
  };

  it('lose nothing while the bridge is killed and the broker restarts', async () => {
    const witnessed = await startLoad();
    const [bridge] = installation.connectors;
    await runFor(witnessed, 400);
    await bridge?.kill();
    await runFor(witnessed, 400);
    await bridge?.start();
    await runFor(witnessed, 400);
    await broker.restart();
    await witnessed.load.online(60);
    await runFor(witnessed, 400);
    const verdict = await settle(witnessed);
    expect(faultsOf(verdict)).toEqual(nothing);
    expect(verdict.stored).toBeGreaterThan(1_500);
  }, 120_000);

  it('lose with the broker only what it had not written down', async () => {
    const witnessed = await startLoad();
    await runFor(witnessed, 400);
    await broker.kill('SIGKILL');
    await broker.restart();
    await witnessed.load.online(60);
    await runFor(witnessed, 400);
    const { invented, doubled, restDiffers } = await settle(witnessed);
    expect({ invented, doubled, restDiffers }).toEqual({ invented: 0, doubled: 0, restDiffers: 0 });
  }, 120_000);

  it('may be served by two bridges at once, one of them killed and back', async () => {
    const [alone, first, second] = installation.connectors;
    await alone?.terminate();
    await Promise.all([first?.start(), second?.start()]);
    const witnessed = await startLoad();
    await runFor(witnessed, 400);
    await second?.kill();
    await runFor(witnessed, 400);
    await second?.start();
    await runFor(witnessed, 400);
    const verdict = await settle(witnessed);
    // This broker deals a device's messages out in turn: a late one is stored, but no longer fires.
    expect(faultsOf({ ...verdict, wrongEvents: 0 })).toEqual(nothing);
  }, 120_000);
});
