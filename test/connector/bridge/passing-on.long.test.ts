import { afterEach, expect, test } from 'vitest';
import { startStandBy } from '../../../connector/bridge/standby.ts';
import { startLease } from '../../../src/db/lease.ts';
import { startProxy } from '../../faults/proxy.ts';
import type { Proxy } from '../../faults/proxy.ts';
import { testDatabase } from '../../support/database.ts';
import type { TestDatabase } from '../../support/database.ts';
import { hasMosquitto, startMosquitto } from '../../support/mosquitto.ts';
import { prepareBridge } from './harness.ts';
import type { TestBridge } from './harness.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

type StandBy = Awaited<ReturnType<typeof startStandBy>>;
type Competitor = { proxy: Proxy; bridge: TestBridge; standBy: StandBy; turns: number };

/** Reaches the database as the others do, and the broker through a proxy of its own. */
async function compete(database: TestDatabase, brokerPort: number): Promise<Competitor> {
  const proxy = await startProxy(brokerPort);
  ends.push(proxy.close);
  const url = `mqtt://127.0.0.1:${proxy.port}`;
  const bridge = prepareBridge({ url, clientId: 'sensorium-bridge', username: 'sensorium-bridge' });
  const competitor = { proxy, bridge, turns: 0 } as Competitor;
  competitor.standBy = await startStandBy({
    broker: { url },
    status: bridge.status,
    log: { info() {}, warn() {}, error() {} },
    startBridge(turn) {
      competitor.turns += 1;
      return bridge.start(turn);
    },
    startLease: (holder) =>
      startLease({
        ...holder,
        connectionString: database.url,
        name: 'the broker',
        holder: `on port ${proxy.port}`,
        onError: () => undefined,
      }),
  });
  ends.push(async () => {
    await competitor.standBy.close({ drainMs: 0 });
    bridge.status.end();
  });
  return competitor;
}

const isConnected = ({ bridge }: Competitor) => bridge.status.read().isConnected;
const reasonOf = ({ bridge }: Competitor) => bridge.status.read().reason;

async function startTwo() {
  const database = await testDatabase();
  ends.push(database.drop);
  const broker = await startMosquitto(['allow_anonymous true', 'use_username_as_clientid true']);
  ends.push(broker.remove);
  const first = await compete(database, broker.port);
  const second = await compete(database, broker.port);
  await expect.poll(() => isConnected(first), { timeout: 60_000 }).toBe(true);
  await expect.poll(() => reasonOf(second)).toBe('standby');
  expect(second.standBy.isReady()).toBe(true);
  return { broker, first, second };
}

test.skipIf(!hasMosquitto).each(['cut', 'stall'] as const)(
  'a holder that loses its connection to the broker (%s) is replaced by another within 10 s, and does not take the lease back',
  async (lose) => {
    const { first, second } = await startTwo();
    const lostMs = performance.now();
    first.proxy[lose]();
    await expect.poll(() => isConnected(second), { interval: 20, timeout: 60_000 }).toBe(true);
    expect(performance.now() - lostMs).toBeLessThan(10_000);
    expect(first.bridge.status.read()).toMatchObject({ isConnected: false, isLeaseHeld: false });
    expect(second.bridge.status.read().isLeaseHeld).toBe(true);
    first.proxy.heal();
    await expect.poll(() => reasonOf(first), { timeout: 60_000 }).toBe('standby');
    expect(first.standBy.isReady()).toBe(true);
    expect([first.turns, second.turns]).toEqual([1, 1]);
    expect(isConnected(second)).toBe(true);
  },
  90_000,
);

test.skipIf(!hasMosquitto)(
  'while no process reaches the broker, each tries once, and one of them connects when it is back',
  async () => {
    const { broker, first, second } = await startTwo();
    const both = [first, second];
    await broker.kill();
    const leases = () => both.map(({ bridge }) => bridge.status.read().isLeaseHeld);
    await expect.poll(() => second.turns, { timeout: 60_000 }).toBe(1);
    await expect.poll(leases, { timeout: 60_000 }).toEqual([false, false]);
    expect(both.map(({ standBy }) => standBy.isReady())).toEqual([false, false]);
    // Longer than the rest after a term: a process that took another one would have done so by now.
    const since = performance.now();
    await expect
      .poll(() => performance.now() - since, { interval: 500, timeout: 60_000 })
      .toBeGreaterThan(8_000);
    expect(both.map(({ turns }) => turns)).toEqual([1, 1]);
    await broker.restart();
    await expect.poll(() => both.some(isConnected), { timeout: 60_000 }).toBe(true);
    await expect
      .poll(() => both.map(({ standBy }) => standBy.isReady()), { timeout: 60_000 })
      .toEqual([true, true]);
    expect(first.turns + second.turns).toBe(3);
    for (const { bridge } of both)
      expect(new Set(bridge.lines.map(({ message }) => message)).size).toBeGreaterThanOrEqual(
        bridge.lines.length - 1,
      );
  },
  120_000,
);
