import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { createExploring } from '../../src/purposes/cases.ts';
import { startEvaluator } from '../engine/engines.ts';
import { runVector } from '../engine/run-vector.ts';
import { Vector } from '../engine/vector.ts';
import { type App, pathsOf, purpose, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

/** Every field of specification section 2.5. */
const everything = {
  puId: 3,
  name: 'everything',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'only',
      isGlobal: true,
      events: [
        {
          evId: 2,
          name: 'all of it',
          eventLog: true,
          actions: {
            sms: { text: 'Hello', phoneNumber: ['+491701234567'] },
            cloud: { sendEvent: true, sendLog: true, sendPush: true },
            engine: { gotoStId: 1, gotoPuId: 3 },
            display: { showText: 'Hi' },
          },
          causes: [
            {
              sId: '0x01',
              orderId: 1,
              senseLog: true,
              measurement: { log: true, interval: 1000, count: 2 },
              threshold: { count: 1, negate: true, relative: true, decimalAcc: 2 },
              thresholds: { isOneOf: [1], isGt: 0, isLt: 9, isNotIn: [2], isAny: true },
            },
            {
              sId: '0x02',
              orderId: 2,
              senseLog: false,
              measurement: { log: false },
              thresholds: {
                isInsideGeo: [
                  { lat: 1, long: 1 },
                  { lat: 1, long: 2 },
                  { lat: 2, long: 2 },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
};

const register = async (token: string, body: unknown) => {
  const answer = await app.call('POST', '/v2/purposes', { token, body });
  return { ...answer, uuid: String(answer.body['purposeUuid']) };
};

describe('4.5 Register New Purpose and Get Purpose', () => {
  test('answer {purposeUuid, timestamp} and every field as it was sent', async () => {
    const token = await app.account();
    const { status, body, uuid } = await register(token, everything);
    expect(status).toBe(200);
    expect(body).toEqual({
      purposeUuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      timestamp: expect.any(Number),
      warnings: expect.any(Array),
    });
    const read = await app.call('GET', `/v2/purposes/${uuid}`, { token });
    expect(read.status).toBe(200);
    expect(read.body).toEqual(everything);
  });

  test('2.5: measurement.log may be the string form of a boolean; unknown fields are left out', async () => {
    const token = await app.account();
    const causes = [{ sId: '0x01', measurement: { log: 'true' }, thresholds: { isAny: true } }];
    const states = [{ stId: 1, events: [{ evId: 1, causes, colour: 'red' }] }];
    const { uuid } = await register(token, { puId: 1, initStId: 1, states });
    const { body } = await app.call('GET', `/v2/purposes/${uuid}`, { token });
    expect(body).toMatchObject({
      states: [{ events: [{ causes: [{ measurement: { log: true } }] }] }],
    });
    expect(JSON.stringify(body)).not.toContain('colour');
  });

  test.each([
    ['no body', undefined, ['']],
    ['nothing in it', {}, ['/puId', '/initStId', '/states']],
    ['numbers too large for an integer', { ...purpose(1), puId: 2 ** 31 }, ['/puId']],
    ['an initial state that is not there', { ...purpose(1), initStId: 9 }, ['/initStId']],
    ['text for a number', { ...purpose(1), initStId: '1' }, ['/initStId']],
    [
      'two states of one number',
      { ...purpose(1), states: [{ stId: 1 }, { stId: 1 }] },
      ['/states/1/stId'],
    ],
  ])('answer 400 and list all problems: %s', async (_name, body, expected) => {
    const answer = await register(await app.account(), body);
    expect(answer.status).toBe(400);
    expect(pathsOf(answer.body)).toEqual(expected);
  });

  test('warn of probable mistakes, beside the normal answer', async () => {
    const states = [{ stId: 1, events: [{ evId: 1 }] }, { stId: 2 }];
    const { status, body } = await register(await app.account(), { puId: 1, initStId: 1, states });
    expect(status).toBe(200);
    const paths = (body['warnings'] as { path: string }[]).map(({ path }) => path);
    expect(new Set(paths)).toEqual(new Set(['/states/0/events/0', '/states/1']));
    const fine = await register(await app.account(), purpose(1));
    expect(fine.body['warnings']).toEqual([]);
  });
});

describe('4.5 Get Purposes', () => {
  test.each(['/v2/purposes', '/v2/purposes/'])('%s lists uuids and names', async (path) => {
    const token = await app.account();
    const first = await register(token, purpose(5));
    const second = await register(token, { ...purpose(6), name: undefined });
    await register(await app.account(), purpose(1));
    const answer = await app.call('GET', path, { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      purposeUuids: [first.uuid, second.uuid],
      purposeNames: ['purpose 5', ''],
      timestamp: expect.any(Number),
    });
  });
});

describe('4.5 Update Purpose', () => {
  test('answers {timestamp} and replaces the purpose', async () => {
    const token = await app.account();
    const { uuid } = await register(token, purpose(1));
    const path = `/v2/purposes/${uuid}`;
    const answer = await app.call('PUT', path, { token, body: everything });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ timestamp: expect.any(Number), warnings: [] });
    expect((await app.call('GET', path, { token })).body).toEqual(everything);
    const list = await app.call('GET', '/v2/purposes', { token });
    expect(list.body).toMatchObject({ purposeUuids: [uuid], purposeNames: ['everything'] });
    const wrong = await app.call('PUT', path, { token, body: { ...everything, puId: 'x' } });
    expect(wrong.status).toBe(400);
    expect((await app.call('GET', path, { token })).body).toEqual(everything);
  });
});

describe('4.5 Delete Purpose', () => {
  test('answers {timestamp, message}; installed profiles keep their copy', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const { uuid } = await register(token, purpose(8));
    const body = { deviceAuthUuids: [device.uuid], purposeUuids: [uuid] };
    await app.call('POST', '/v2/devices/profile', { token, body });
    const answer = await app.call('DELETE', `/v2/purposes/${uuid}`, { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ timestamp: expect.any(Number), message: expect.any(String) });
    expect((await app.call('GET', `/v2/purposes/${uuid}`, { token })).status).toBe(404);
    const configured = await app.call('GET', `/v2/devices/${device.uuid}/configuration`, { token });
    expect(configured.body).toMatchObject({ pendingProfile: { purposes: [{ puId: 8 }] } });
  });
});

describe('7 Errors: what is unknown, malformed or somebody else’s is 404', () => {
  test.each([
    ['GET', undefined],
    ['PUT', purpose(2)],
    ['DELETE', undefined],
  ])('%s /v2/purposes/{purposeUuid}', async (method, body) => {
    const owner = await app.account();
    const { uuid } = await register(owner, purpose(1));
    const token = await app.account();
    for (const id of [uuid, randomUUID(), 'nothing']) {
      const answer = await app.call(method, `/v2/purposes/${id}`, { token, body });
      expect(answer.status).toBe(404);
    }
    const kept = await app.call('GET', `/v2/purposes/${uuid}`, { token: owner });
    expect(kept.body).toMatchObject({ puId: 1 });
  });

  test.each([
    ['POST', '/v2/purposes', purpose(1)],
    ['GET', '/v2/purposes', undefined],
    ['GET', `/v2/purposes/${randomUUID()}`, undefined],
    ['PUT', `/v2/purposes/${randomUUID()}`, purpose(1)],
    ['DELETE', `/v2/purposes/${randomUUID()}`, undefined],
  ])('%s %s without a token is 401', async (method, path, body) => {
    expect((await app.call(method, path, { body })).status).toBe(401);
  });
});

describe('4.5 Get Cases', () => {
  test('say how each event fires, and are tests that an engine passes', async () => {
    const token = await app.account();
    const { uuid } = await register(token, purpose(1));
    const { status, body } = await app.call('GET', `/v2/purposes/${uuid}/cases`, { token });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      isWhole: true,
      warnings: [],
      events: [{ fires: { is: 'witnessed', steps: [{ afterMs: 1_000, sId: '0x01', val: 21 }] } }],
    });
    const cases = Vector.array().parse(body['cases']);
    expect(cases.length).toBeGreaterThan(0);
    for (const one of cases) runVector(one, startEvaluator);
    const again = await app.call('GET', `/v2/purposes/${uuid}/cases`, { token });
    expect({ ...again.body, timestamp: 0 }).toEqual({ ...body, timestamp: 0 });
  });

  test('of a purpose of another account are 404', async () => {
    const { uuid } = await register(await app.account(), purpose(1));
    const token = await app.account();
    const { status } = await app.call('GET', `/v2/purposes/${uuid}/cases`, { token });
    expect(status).toBe(404);
  });

  test('beyond a few at a time are refused, and not those of another account', async () => {
    const exploring = createExploring({ warnMs: 0 });
    onTestFinished(() => exploring.close());
    // Each another one: what was found of a purpose is kept.
    const many = Promise.allSettled(
      Array.from({ length: 12 }, (_, n) =>
        exploring.listCases(1, Purpose.parse(purpose(1_000 + n))),
      ),
    );
    expect(await exploring.listCases(2, Purpose.parse(purpose(2_000)))).toMatchObject({
      isWhole: true,
    });
    const refused = (await many).filter(({ status }) => status === 'rejected');
    // One is explored, and four wait.
    expect(refused).toHaveLength(7);
    for (const each of refused)
      expect(each).toMatchObject({ reason: { code: 'too-many-requests' } });
  });
});
