import { afterEach, describe, expect, test } from 'vitest';
import { UnreadBodies } from '../../../src/lib/request-body.ts';
import { manualClock, until } from '../harness.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

const body = '{"sId":"0x10","val":1}';
const wrong = { authorization: 'Bearer nothing-that-opens-anything' };

describe('a device over HTTP', () => {
  test('logs in with uuid and token as Basic, or its token as Bearer; capitals are the same uuid', async () => {
    world = await startHttpWorld();
    const { uuid, token } = world.device;
    const upper = { uuid: uuid.toUpperCase(), token };
    for (const authorization of [world.basic(), world.basic(upper), `bearer ${token}`])
      expect(
        (await world.send(world.pathOf('measurements'), { headers: { authorization }, body }))
          .status,
      ).toBe(200);
    const path = world.pathOf('measurements', upper);
    expect(
      (await world.send(path, { headers: { authorization: world.basic() }, body })).status,
    ).toBe(200);
    expect(
      world.store.stored.every(
        ({ uplink }) => uplink.topic === world.pathOf('measurements').slice(1),
      ),
    ).toBe(true);
  });

  test.each([
    ['nothing', undefined],
    ['another scheme', 'Digest x'],
    ['a wrong token', 'Bearer wrong'],
    ['no colon', `Basic ${Buffer.from('text').toString('base64')}`],
    ['an empty one', 'Basic '],
    ['text that is not base64', 'Basic \u00e4\u00e4'],
  ])('that sends %s gets 401, which names the schemes', async (_name, authorization) => {
    world = await startHttpWorld();
    const headers = authorization === undefined ? {} : { authorization };
    const answer = await world.send(world.pathOf('measurements'), { headers, body });
    expect([answer.status, answer.body['status']]).toEqual([401, 401]);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic .*Bearer/);
    expect(world.logged).toEqual(['http.login-refused']);
  });

  test('whose body is unread when it is refused is charged by its own address, not by its proxy’s', async () => {
    const charged: string[] = [];
    class Recorded extends UnreadBodies {
      override drop(...args: Parameters<UnreadBodies['drop']>): Promise<void> {
        charged.push(args[1]);
        return super.drop(...args);
      }
    }
    world = await startHttpWorld({ unreadBodies: new Recorded() });
    const head = `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\n`;
    const answer = await world.raw(`${head}Content-Length: 100000\r\n\r\n`, 'x'.repeat(100_000));
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(charged).toEqual(['192.0.2.7']);
  });

  test('cannot reach another one’s path: 404 with its own login, 401 with its token', async () => {
    world = await startHttpWorld();
    const other = world.store.addDevice(2);
    const path = world.pathOf('measurements', other);
    const { token } = world.device;
    const own = await world.send(path, { headers: { authorization: world.basic() }, body });
    expect(own.status).toBe(404);
    const bearer = await world.send(path, { headers: { authorization: `Bearer ${token}` }, body });
    expect(bearer.status).toBe(401);
    expect(world.store.stored).toEqual([]);
  });

  test('that was removed is refused from its next request on, on the same connection too', async () => {
    world = await startHttpWorld();
    expect((await world.post('measurements', body)).status).toBe(200);
    world.store.removeDevice(world.device.uuid);
    expect((await world.post('measurements', body)).status).toBe(401);
  });

  test('is told to come again while its access cannot be checked', async () => {
    world = await startHttpWorld();
    world.store.isAway = true;
    const answer = await world.post('measurements', body);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(world.logged).toEqual([]);
  });
});

describe('wrong logins', () => {
  test('of one address are refused unchecked beyond a rate; others are let in', async () => {
    const clock = manualClock();
    world = await startHttpWorld({ now: clock.now, limits: { refusedLoginsPerSecond: 0.05 } });
    const of = (address: string) => ({ 'x-forwarded-for': address });
    const path = world.pathOf('measurements');
    const first = await world.send(path, { headers: { ...wrong, ...of('192.0.2.1') }, body });
    expect(first.status).toBe(401);
    const checks = world.store.checks;
    const dialled = await world.dial();
    let said = '';
    dialled.on('data', (chunk: Buffer) => (said += chunk.toString()));
    dialled.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\nAuthorization: ${wrong.authorization}\r\nContent-Length: 0\r\n\r\n`,
    );
    await until(() => said.startsWith('HTTP/1.1 429'), 'the refusal');
    expect(said).toMatch(/Retry-After: [2-4]\d\r\n/);
    expect(world.store.checks).toBe(checks);
    const honest = await world.post('measurements', body, { headers: of('192.0.2.2') });
    expect(honest.status).toBe(200);
    clock.monotonicMs += 60_000;
    const later = await world.post('measurements', body, { headers: of('192.0.2.1') });
    expect(later.status).toBe(200);
  });
});
