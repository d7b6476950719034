import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { createAdmission, type Admitted } from '../../connector/mqtt/admission.ts';
import { manualClock, startWorld, until, type World, type WorldOptions } from './harness.ts';
import { connectPacket, enter, RawClient } from './raw.ts';

let world: World;
const start = async (options: WorldOptions = {}) => (world = await startWorld(options));
afterEach(() => world.close());

const dialFrom = async (address: string) => new RawClient(await world.dial(world.port, address));
const snapshot = () => world.connector.snapshot();

/** A device that connects from an address of this machine. */
async function enterFrom(address: string, number: number): Promise<RawClient> {
  const { uuid, token } = world.store.addDevice(number);
  const raw = await dialFrom(address);
  raw.send(connectPacket(world, { username: uuid, password: Buffer.from(token), clientId: '' }));
  return raw;
}

describe('connections of one address', () => {
  test('that say nothing delay only their own address', async () => {
    await start({ limits: { connectingPerAddress: 3 } });
    const silent = [];
    for (let n = 0; n < 3; n += 1) silent.push(await dialFrom('127.0.0.1'));
    const waiting = await enterFrom('127.0.0.1', 7);
    await until(() => snapshot().waiting === 1);
    const other = await enterFrom('127.0.0.2', 8);
    await other.expect('connack');
    expect(waiting.received).toEqual([]);
    silent[0]?.socket.destroy();
    await waiting.expect('connack');
    expect(snapshot().waiting).toBe(0);
  });

  test('that were let in delay nobody: more than that many are served in turn', async () => {
    await start({ limits: { connectingPerAddress: 2 } });
    const raws = await Promise.all(
      Array.from({ length: 40 }, (_, n) => enterFrom('127.0.0.1', n + 10)),
    );
    for (const raw of raws) await raw.expect('connack');
    expect(snapshot().connections).toBe(40);
  });

  test('wait up to a number; one more is closed, another address is not', async () => {
    await start({ limits: { connectingPerAddress: 1, waitingPerAddress: 2 } });
    const first = await dialFrom('127.0.0.1');
    const waiting = [await dialFrom('127.0.0.1'), await dialFrom('127.0.0.1')];
    await until(() => snapshot().waiting === 2);
    const excess = await dialFrom('127.0.0.1');
    await excess.ended();
    await (await enterFrom('127.0.0.2', 8)).expect('connack');
    expect([first, ...waiting].map(({ isClosed }) => isClosed)).toEqual([false, false, false]);
    expect(world.counted.filter((what) => what.startsWith('refused'))).toEqual([
      'refused too-many',
    ]);
  });

  test('that wait are limited in total; further ones are closed, and another address finds a place', async () => {
    const clock = manualClock();
    const tuning = { maxWaitingConnections: 4 };
    await start({ now: clock.now, limits: { connectsPerSecond: 10 }, tuning });
    const raws: RawClient[] = [];
    for (let n = 0; n < 4; n++) raws.push(await dialFrom('127.0.0.1'));
    await raws[3]?.ended();
    expect(raws.map(({ isClosed }) => isClosed)).toEqual([false, false, false, true]);
    expect(world.counted).toEqual(['refused too-many']);
    const other = await dialFrom('127.0.0.2');
    await until(() => snapshot().waiting === 3);
    expect(other.isClosed).toBe(false);
    expect(world.counted).toHaveLength(1);
  });

  test('take turns with those of other addresses, even if the rate lets few in', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { connectsPerSecond: 10 } });
    await dialFrom('127.0.0.1');
    for (let n = 0; n < 5; n += 1) await dialFrom('127.0.0.1');
    await until(() => snapshot().waiting === 5);
    const other = await enterFrom('127.0.0.2', 8);
    await until(() => snapshot().waiting === 6);
    for (const left of [5, 4]) {
      clock.monotonicMs += 100;
      await until(() => snapshot().waiting === left);
    }
    await other.expect('connack');
  });

  test('wait after too many refused logins, until a second has made room', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { refusedLoginsPerSecond: 5 } });
    for (let n = 0; n < 5; n += 1)
      await (await enter(world, { password: Buffer.from('wrong') })).ended();
    const waiting = await enterFrom('127.0.0.1', 7);
    await until(() => snapshot().waiting === 1);
    await (await enterFrom('127.0.0.2', 8)).expect('connack');
    expect(waiting.received).toEqual([]);
    clock.monotonicMs += 1_000;
    await waiting.expect('connack');
  });

  test('behind a trusted proxy belong to the address that it names', async () => {
    await start({ trustedProxies: ['127.0.0.0/8'], limits: { connectingPerAddress: 1 } });
    const dialAs = async (address: string) => {
      const raw = await dialFrom('127.0.0.1');
      raw.socket.write(`PROXY TCP4 ${address} 127.0.0.1 51000 1883\r\n`);
      return raw;
    };
    const silent = await dialAs('203.0.113.7');
    await until(() => snapshot().connections === 1);
    const waiting = await dialAs('203.0.113.7');
    waiting.send(connectPacket(world));
    await until(() => snapshot().waiting === 1);
    const other = await dialAs('203.0.113.8');
    other.send(connectPacket(world, { clientId: 'other' }));
    await other.expect('connack');
    silent.socket.destroy();
    await waiting.expect('connack');
  });
});

describe('a device that connects again and again', () => {
  const come = async () => {
    const raw = await enter(world);
    const [{ returnCode } = { returnCode: undefined }] = raw.of('connack');
    raw.socket.destroy();
    return returnCode;
  };

  test('is let in as often as it may: only the excess is refused, and one rejection reports it', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { reconnectsPerSecond: 2, reconnectsBurst: 5 } });
    const codes = [];
    for (let n = 0; n < 9; n += 1) codes.push(await come());
    expect(codes).toEqual([0, 0, 0, 0, 0, 3, 3, 3, 3]);
    clock.monotonicMs += 1_000;
    expect([await come(), await come(), await come()]).toEqual([0, 0, 3]);
    const told = () =>
      world.store.stored.filter(
        ({ uplink }) => uplink.rejections[0]?.reason === 'too-many-connects',
      );
    expect(told()).toHaveLength(1);
    expect(told()[0]).toMatchObject({
      device: world.device.identity,
      uplink: { topic: 'CONNECT' },
    });
    await until(() => world.counted.filter((what) => what === 'refused reconnects').length === 5);
    const { uuid, accountId } = world.device.identity;
    const refused = { uuid, accountId, reason: 'too-many-connects', address: '127.0.0.1' };
    expect(world.store.refused).toHaveLength(5);
    expect(world.store.refused[0]).toEqual(refused);
    clock.monotonicMs += 60_000;
    for (let n = 0; n < 7; n += 1) await come();
    expect(told()).toHaveLength(2);
  });

  test('takes no turns from another one', async () => {
    const clock = manualClock();
    await start({ now: clock.now, limits: { reconnectsBurst: 1 } });
    expect([await come(), await come()]).toEqual([0, 3]);
    await (await enterFrom('127.0.0.1', 7)).expect('connack');
  });
});

test('a refusal counts against the connection’s address, even if that was forgotten meanwhile', async () => {
  const most = 1_000_000;
  const admission = createAdmission({
    connectsPerSecond: most,
    connectingPerAddress: most,
    waitingPerAddress: most,
    refusedLoginsPerSecond: 10,
    maxWaiting: most,
    places: null,
    now: () => 0,
    onTooMany: () => undefined,
  });
  const entered: Admitted[] = [];
  const offer = (address: string) =>
    admission.offer(new PassThrough(), address, (entry) => entered.push(entry));
  offer('192.0.2.1');
  const [old] = entered.splice(0);
  old?.letIn();
  // Enough to make it forget addresses that it knows nothing more about.
  for (let n = 0; n <= 10_000; n += 1) offer(`10.0.${n >> 8}.${n & 255}`);
  old?.refused(100);
  entered.length = 0;
  offer('192.0.2.1');
  offer('192.0.2.2');
  await until(() => entered.length > 0, 'the other address');
  expect(entered.map(({ address }) => address)).toEqual(['192.0.2.2']);
  admission.close();
});
