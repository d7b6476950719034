import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import type { Uplink } from '../../../src/contract/uplink.ts';
import { DomainError } from '../../../src/errors.ts';
import { manualClock, until } from '../harness.ts';
import { startHttpWorld, type HttpAnswer, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

const measured = { sId: '0x10', val: 21.5, ts: 1_767_225_600_000 };
const kindsOf = ({ store }: HttpWorld) => store.stored.map(({ uplink }) => uplink.content.kind);
const valuesOf = ({ store }: HttpWorld) => store.stored.map(({ uplink }) => itemsOf(uplink)).flat();
const itemsOf = ({ content }: Uplink) =>
  content.kind === 'measurements' ? content.items.map(({ value }) => value.val) : [];

describe('what a device posts', () => {
  test('is handed on by its topic, and answered once it is stored', async () => {
    world = await startHttpWorld();
    world.store.isHolding = true;
    let isAnswered = false;
    const answer = world.post('measurements', measured).finally(() => (isAnswered = true));
    await until(() => world.store.held.length === 1);
    expect(isAnswered).toBe(false);
    world.store.release();
    expect((await answer).status).toBe(200);
    await world.post('state', { puId: 1, stId: 2 });
    await world.post('profile', { state: 'request' });
    await world.post('configuration', { device: {}, module: [] });
    expect(kindsOf(world)).toEqual(['measurements', 'state', 'profile-request', 'configuration']);
  });

  test('may be one item a line', async () => {
    world = await startHttpWorld();
    const lines = `${JSON.stringify(measured)}\n\n${JSON.stringify({ ...measured, val: 22 })}\r\nnope\n`;
    const answer = await world.post('measurements', lines, { type: 'application/x-ndjson' });
    expect(answer.status).toBe(200);
    expect(valuesOf(world)).toEqual([21.5, 22]);
    expect(world.store.stored[0]?.uplink.rejections).toMatchObject([
      { reason: 'invalid-json', path: '/3' },
    ]);
  });

  test('may arrive in chunks, without a type, and with a charset', async () => {
    world = await startHttpWorld();
    const text = JSON.stringify(measured);
    const head = `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\n`;
    const said = await world.raw(
      `${head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      `5\r\n${text.slice(0, 5)}\r\n`,
      `${(text.length - 5).toString(16)};x=y\r\n${text.slice(5)}\r\n0\r\n\r\n`,
    );
    expect(said).toMatch(/^HTTP\/1\.1 200 OK/);
    await world.post('measurements', measured, { type: 'application/json; charset=UTF-8' });
    expect(valuesOf(world)).toEqual([21.5, 21.5]);
  });

  test('may ask for the time, and gets its echo back', async () => {
    world = await startHttpWorld();
    const before = Date.now();
    const { status, body } = await world.post('time', { echo: 'boot 7' });
    expect([status, body['echo']]).toEqual([200, 'boot 7']);
    expect(body['timestamp']).toBeGreaterThanOrEqual(before);
    expect((await world.post('time', {})).body).not.toHaveProperty('echo');
  });

  test('takes effect in the order of arrival, even over two connections', async () => {
    world = await startHttpWorld();
    world.store.isHolding = true;
    const answered: number[] = [];
    const all = [1, 2, 3, 4].map(async (val, n) => {
      await until(() => world.store.held.length === n, `message ${n}`);
      await world.post('measurements', { ...measured, val });
      answered.push(val);
    });
    await until(() => world.store.held.length === 4);
    world.store.release();
    await Promise.all(all);
    expect(valuesOf(world)).toEqual([1, 2, 3, 4]);
    expect(answered).toEqual([1, 2, 3, 4]);
  });
});

describe('a request that is refused', () => {
  test.each([
    ['an unknown type', { type: 'text/plain' }, 415],
    ['another character set', { type: 'application/json; charset=latin1' }, 415],
    ['a form, as curl sends it', { type: 'application/x-www-form-urlencoded' }, 415],
    ['a compressed body', { headers: { 'content-encoding': 'gzip' } }, 415],
  ])('%s', async (_name, more, status) => {
    world = await startHttpWorld();
    const answer = await world.post('measurements', measured, more);
    expect([answer.status, answer.body['status']]).toEqual([status, status]);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.body['type']).toMatch(/^urn:sensorium:error:/);
    expect(world.store.stored).toEqual([]);
  });

  test('is too large, announced or not; one that just fits is not', async () => {
    world = await startHttpWorld({ limits: { maxPacketBytes: 200 } });
    const text = JSON.stringify(measured);
    expect((await world.post('measurements', text.padEnd(200))).status).toBe(200);
    expect((await world.post('measurements', text.padEnd(201))).status).toBe(413);
    const chunk = `c8\r\n${' '.repeat(200)}\r\n`;
    const said = await world.raw(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`,
    );
    expect(said).toMatch(/^HTTP\/1\.1 413 /);
    expect(said).toContain('Connection: close');
    expect(world.store.stored).toHaveLength(1);
    await until(() => world.connector.snapshot().bytes === 0, 'the room');
  });

  test('uses another method, or a path that does not exist', async () => {
    world = await startHttpWorld();
    const { uuid } = world.device;
    const headers = { authorization: world.basic() };
    const get = await world.send(world.pathOf('measurements'), { method: 'GET', headers });
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
    for (const path of [`/devices/${uuid}`, `/devices/${uuid}/up`, `/devices/${uuid}/up/state/x`])
      expect((await world.send(path, { headers })).status).toBe(404);
  });
});

describe('while nothing can be stored', () => {
  test('the answer is 503 with Retry-After, at once or after enough attempts', async () => {
    const clock = manualClock();
    world = await startHttpWorld({ now: clock.now });
    world.store.isHolding = true;
    const failing = world.post('measurements', measured);
    await until(() => world.store.held.length === 1);
    world.store.held.shift()?.fail(new DomainError('unavailable', 'The store is away.'));
    expect((await failing).status).toBe(503);
    const late = world.post('measurements', measured);
    await until(() => world.store.held.length === 1);
    clock.monotonicMs += 10_000;
    const answer = await late;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect([world.store.held.length, world.store.withdrawals]).toEqual([0, 1]);
  });

  test('a client that goes away has its message withdrawn', async () => {
    world = await startHttpWorld();
    world.store.isHolding = true;
    const socket = await world.dial();
    // Without a time a second copy would be another measurement.
    const text = JSON.stringify({ sId: '0x1', val: 1 });
    socket.write(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    );
    await until(() => world.store.held.length === 1);
    socket.resetAndDestroy();
    await until(() => world.store.withdrawals === 1, 'the withdrawal');
    expect(world.connector.snapshot()).toEqual({
      underWay: 0,
      waiting: 0,
      polls: 0,
      refusals: 0,
      bytes: 0,
    });
  });

  test('a client that ends its side after the request is answered once it is stored', async () => {
    world = await startHttpWorld();
    world.store.isHolding = true;
    const socket = await world.dial();
    const text = JSON.stringify(measured);
    let said = '';
    socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
    socket.end(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    );
    await until(() => world.store.held.length === 1);
    // Its end has been seen once a later request is answered.
    expect((await world.send('/devices/x')).status).toBe(404);
    expect([world.store.withdrawals, said]).toEqual([0, '']);
    world.store.release();
    await once(socket, 'end');
    expect(said).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.store.stored).toHaveLength(1);
    socket.end();
  });

  test('a stop waits for what is under way', async () => {
    world = await startHttpWorld();
    world.store.isHolding = true;
    const first = world.post('measurements', measured);
    await until(() => world.store.held.length === 1);
    const closed = world.connector.close({ drainMs: 5_000 });
    const second = await world.post('measurements', measured);
    expect([second.status, second.headers.get('connection')]).toEqual([503, 'close']);
    world.store.release();
    expect((await first).status).toBe(200);
    await closed;
  });
});

describe('the rates', () => {
  const limits = { messagesPerSecond: 1, messagesBurst: 2 };

  test('delay answers by at most ten seconds, in order, and refuse beyond', async () => {
    const clock = manualClock();
    world = await startHttpWorld({ limits, now: clock.now });
    const send = (val: number) => world.post('measurements', { ...measured, val });
    expect([(await send(1)).status, (await send(2)).status]).toEqual([200, 200]);
    const waiting: Promise<HttpAnswer>[] = [];
    for (let n = 1; n <= 10; n += 1) {
      waiting.push(send(2 + n));
      await until(() => world.connector.snapshot().waiting === n, `${n} that wait`);
    }
    const refused = await send(99);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '11']);
    for (let n = 1; n <= 10; n += 1) {
      clock.monotonicMs += 1_000;
      await until(() => world.store.stored.length === 2 + n, `message ${2 + n}`);
    }
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(statuses).toEqual(Array.from({ length: 10 }, () => 200));
    expect(valuesOf(world)).toEqual(Array.from({ length: 12 }, (_, n) => n + 1));
  });

  test('refuse a message that has waited ten seconds and would have to wait on', async () => {
    const clock = manualClock();
    const throttle = { waitMs: () => 5_000, waits() {} };
    world = await startHttpWorld({ ports: { throttle }, now: clock.now });
    const answer = world.post('measurements', measured);
    await until(() => world.connector.snapshot().waiting === 1);
    clock.monotonicMs += 10_000;
    expect([(await answer).status, (await answer).headers.get('retry-after')]).toEqual([429, '5']);
    expect(world.store.stored).toEqual([]);
  });

  test('an account whose storage is full is told to come again in an hour', async () => {
    const waited: string[] = [];
    const throttle = {
      waitMs: () => 1_000,
      isFull: () => true,
      waits: (_device: unknown, topic: string) => void waited.push(topic),
    };
    world = await startHttpWorld({ ports: { throttle } });
    const answer = await world.post('measurements', measured);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '3600']);
    expect(waited).toEqual([world.pathOf('measurements').slice(1)]);
  });

  test('the memory for messages is shared: an account has a part, and the others the rest', async () => {
    world = await startHttpWorld({ tuning: { maxUnackedTotalBytes: 100_000 } });
    const other = world.store.addDevice(2, 2);
    const large = JSON.stringify(measured).padEnd(5_000);
    world.store.isHolding = true;
    const first = world.post('measurements', large);
    await until(() => world.store.held.length === 1);
    const second = world.post('measurements', large);
    const others = world.post('measurements', measured, { as: other });
    await until(() => world.store.held.length === 2);
    expect(world.store.held.map(({ device }) => device.accountId)).toEqual([1, 2]);
    world.store.release();
    expect([(await first).status, (await second).status, (await others).status]).toEqual([
      200, 200, 200,
    ]);
  });
});
