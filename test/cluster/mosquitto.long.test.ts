import { chmodSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceProcess } from '../faults/service-process.ts';
import { faultsOf, judge, noFaults } from '../faults/verdict.ts';
import type { Verdict, Witnessed } from '../faults/verdict.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts';
import type { Mosquitto } from '../support/mosquitto.ts';
import { hasRedis } from '../support/redis.ts';
import { bridgeTo, endSession, findHolder } from './broker.ts';
import type { Holder } from './broker.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

/** For a long run by hand: CLUSTER_KILLS=30 npm run test:nightly -- cluster/mosquitto */
const kills = Number(process.env['CLUSTER_KILLS'] ?? 2);

/** Settings with which a broker keeps what it has acknowledged. */
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
      standBys: [2],
    });
  });
  afterAll(async () => {
    await installation.close();
    await broker.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  async function runFor({ load }: Witnessed, acknowledgements: number): Promise<void> {
    const goal = load.counts().acknowledged + acknowledgements;
    while (load.counts().acknowledged < goal) await load.nextAck();
  }

  /** Waits for what the broker still has, because it acknowledges before we have stored. */
  async function settle(witnessed: Witnessed): Promise<Verdict> {
    expect(await witnessed.load.stop(60_000)).toBe(true);
    const readLost = async () => (await judge(witnessed)).lost;
    await expect.poll(readLost, { interval: 100, timeout: 60_000 }).toBe(0);
    return judge(witnessed);
  }

  /** The same if some of it is lost: waits until no more comes. */
  async function settleWhatIsLeft(witnessed: Witnessed): Promise<Verdict> {
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

  /** Odd, so that a broker that deals messages out in turn spreads a device's messages over both. */
  const devices = 61;

  const startLoad = async () => {
    const witnessed = await installation.startLoad({ port: broker.port, devices, rate: 600 });
    witnessed.load.start();
    return witnessed;
  };

  /** The next holder of the lease after `before`. */
  async function nextHolder({ cluster }: Witnessed, before: Holder | null): Promise<Holder> {
    let holder: Holder | null = null;
    await expect
      .poll(
        async () => {
          holder = await findHolder(cluster.url());
          return holder !== null && holder.session !== before?.session;
        },
        { interval: 20, timeout: 60_000 },
      )
      .toBe(true);
    return holder as Holder | null as Holder;
  }

  const processOf = ({ process }: Holder): ServiceProcess =>
    installation.connectors.find((each) => each.isRunning() && each.pid() === process) as never;

  it(
    'lose nothing, and no order, while the bridge is killed, cut off and stopped, and the broker restarts',
    { timeout: 120_000 + kills * 30_000 },
    async () => {
      const witnessed = await startLoad();
      let holder = await nextHolder(witnessed, null);
      for (let time = 0; time < kills; time++) {
        await runFor(witnessed, 200);
        const killed = processOf(holder);
        await killed.kill();
        holder = await nextHolder(witnessed, holder);
        expect(processOf(holder)).not.toBe(killed);
        await killed.start();
      }
      await runFor(witnessed, 200);
      await endSession(witnessed.cluster.url(), holder.session);
      holder = await nextHolder(witnessed, holder);
      await runFor(witnessed, 200);
      await broker.restart();
      await witnessed.load.online(devices);
      await runFor(witnessed, 200);
      const stopped = processOf(holder);
      expect(await stopped.terminate()).toBe(0);
      holder = await nextHolder(witnessed, holder);
      expect(processOf(holder)).not.toBe(stopped);
      await runFor(witnessed, 200);
      const verdict = await settle(witnessed);
      expect(faultsOf(verdict)).toEqual(noFaults);
      expect(verdict.stored).toBeGreaterThan(1_000);
    },
  );

  it('lose with the broker only what it had not written to disk', async () => {
    const witnessed = await startLoad();
    await runFor(witnessed, 400);
    await broker.kill('SIGKILL');
    await broker.restart();
    await witnessed.load.online(devices);
    await runFor(witnessed, 400);
    const { invented, doubled, restDiffers } = await settleWhatIsLeft(witnessed);
    expect({ invented, doubled, restDiffers }).toEqual({ invented: 0, doubled: 0, restDiffers: 0 });
  });

  it('are stored once by two bridges that share, in order only if the broker hashes', async () => {
    const [alone, first, second, standBy] = installation.connectors;
    await Promise.all([alone?.kill(), standBy?.kill(), first?.start(), second?.start()]);
    const witnessed = await startLoad();
    await runFor(witnessed, 200);
    await second?.kill();
    await runFor(witnessed, 200);
    await second?.start();
    await runFor(witnessed, 200);
    const verdict = await settle(witnessed);
    // This broker deals a device's messages out in turn. A late one is stored, but no longer fires.
    expect(faultsOf({ ...verdict, wrongEvents: 0 })).toEqual(noFaults);
  });
});
