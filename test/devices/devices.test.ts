import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deriveToken } from '../../src/devices/tokens.ts';
import { type App, configuration, connectors, keys, pathsOf, startApp } from './app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe('4.3 Register Device', () => {
  test('answers 200 with one of the configured connectors, uuid, token and timestamp', async () => {
    const token = await app.account();
    const answer = await app.call('POST', '/v2/devices', { token, body: configuration });
    expect(answer.status).toBe(200);
    const { connectorId } = answer.body;
    const connector = connectors.find(({ id }) => id === connectorId);
    expect(answer.body).toEqual({
      connectorId,
      connectorName: connector?.name,
      protocol: 'mqtt',
      host: connector?.host,
      port: connector?.port,
      deviceAuthUuid: expect.stringMatching(uuid),
      deviceAuthToken: expect.stringMatching(/^[\w-]{32,43}$/),
      timestamp: expect.any(Number),
    });
  });

  test('accepts a device with only the required members', async () => {
    const token = await app.account();
    const device = await app.device(token, { device: {}, module: [{ moduleId: 'm' }] });
    const answer = await app.call('GET', `/v2/devices/${device.uuid}/configuration`, { token });
    expect(answer.body).toMatchObject({ device: {}, module: [{ moduleId: 'm', senses: [] }] });
  });

  test.each([
    ['no body', undefined, ['']],
    ['nothing in it', {}, ['/device', '/module']],
    ['a module without identifier', { device: {}, module: [{}] }, ['/module/0/moduleId']],
    [
      'senses that are none',
      { device: { name: 5 }, module: [{ moduleId: 'm', senses: [{ sId: '1' }, {}] }] },
      ['/device/name', '/module/0/senses/0/sId', '/module/0/senses/1/sId'],
    ],
    [
      'bounds that are text and a fraction of an interval',
      {
        device: {},
        module: [{ moduleId: 'm', senses: [{ sId: '0x1', min: '1', minInterval: 0.5 }] }],
      },
      ['/module/0/senses/0/min', '/module/0/senses/0/minInterval'],
    ],
    [
      'bounds the wrong way round',
      {
        device: {},
        module: [{ moduleId: 'a', senses: [{ sId: '0x1', min: 2, max: 1 }] }],
      },
      ['/module/0/senses/0/min'],
    ],
    [
      'an sId that is there twice',
      {
        device: {},
        module: [
          { moduleId: 'a', senses: [{ sId: '0x1' }] },
          { moduleId: 'b', senses: [{ sId: '0x2' }, { sId: '0x1' }] },
        ],
      },
      ['/module/1/senses/1/sId'],
    ],
  ])('answers 400 and lists all problems: %s', async (_name, body, expected) => {
    const token = await app.account();
    const answer = await app.call('POST', '/v2/devices', { token, body });
    expect(answer.status).toBe(400);
    expect(pathsOf(answer.body)).toEqual(expected);
  });

  test('answers 401 without a token', async () => {
    const answer = await app.call('POST', '/v2/devices', { body: configuration });
    expect(answer.status).toBe(401);
  });

  test('answers 401 if the account was deleted meanwhile', async () => {
    const token = await app.account();
    await app.db.query('delete from account where id = $1', [Number(token)]);
    const answer = await app.call('POST', '/v2/devices', { token, body: configuration });
    expect(answer.status).toBe(401);
  });
});

describe('4.3 Get user devices', () => {
  test('lists uuid, token and state, with name and presence, in order of registration', async () => {
    const token = await app.account();
    const first = await app.device(token);
    const second = await app.device(token, { ...configuration, device: {} });
    await app.db.query(
      `insert into presence (device_id, connector_id, connected, last_seen_at)
       values ($1, 1, true, ms_to_timestamp(1700000000123))`,
      [second.deviceId],
    );
    const answer = await app.call('GET', '/v2/devices', { token });
    expect(answer.status).toBe(200);
    const state = { puId: 0, stId: 0, ts: expect.any(Number) };
    expect(answer.body).toEqual({
      devices: [
        {
          uuid: first.uuid,
          token: first.password,
          state,
          name: 'probe',
          labels: [],
          connected: false,
          lastSeenTs: null,
        },
        {
          uuid: second.uuid,
          token: second.password,
          state,
          name: '',
          labels: [],
          connected: true,
          lastSeenTs: 1_700_000_000_123,
        },
      ],
      timestamp: expect.any(Number),
    });
  });

  test('is empty for an account without devices, and never shows those of another', async () => {
    await app.device(await app.account());
    const answer = await app.call('GET', '/v2/devices', { token: await app.account() });
    expect(answer.body).toEqual({ devices: [], timestamp: expect.any(Number) });
  });
});

describe('POST /v2/devices/{deviceAuthUuid}/token', () => {
  test('answers {deviceAuthToken, timestamp} with a new token, which the list shows too', async () => {
    const token = await app.account();
    const device = await app.device(token);
    app.told.length = 0;
    const path = `/v2/devices/${device.uuid}/token`;
    const answer = await app.call('POST', path, { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      deviceAuthToken: deriveToken(keys, device.uuid, 2),
      timestamp: expect.any(Number),
    });
    expect(answer.body['deviceAuthToken']).not.toBe(device.password);
    const list = await app.call('GET', '/v2/devices', { token });
    expect(list.body).toMatchObject({ devices: [{ token: answer.body['deviceAuthToken'] }] });
    const { deviceId } = device;
    expect(app.told).toEqual([{ channel: 'access', message: { deviceId, uuid: device.uuid } }]);
    const wrong = await app.call('POST', path, { token, body: { revoke: 'yes' } });
    expect(pathsOf(wrong.body)).toEqual(['/revoke']);
  });
});

describe('GET /v2/devices/{deviceAuthUuid}/evaluation', () => {
  const path = (device: { uuid: string }) => `/v2/devices/${device.uuid}/evaluation`;

  test('says what live events have and still lack, or that the service does not evaluate', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const none = await app.call('GET', path(device), { token });
    expect(none.body).toMatchObject({ engine: 'none', evaluation: null });
    const pId = await app.install(token, [device.uuid]);
    await app.db.query(`update device_profile set state = 'current' where profile_id = $1`, [pId]);
    const answer = await app.call('GET', path(device), { token });
    expect(answer.body).toMatchObject({
      engine: 'service',
      evaluation: {
        pId,
        puId: 7,
        stId: 1,
        events: [
          {
            evId: 1,
            text: 'fires when its cause holds',
            tells: 'nobody',
            causes: [{ sId: '0x01', matched: 0, holds: false, text: 'no measurement yet' }],
          },
        ],
      },
    });
    await app.db.query(`update device_profile set engine = 'device' where profile_id = $1`, [pId]);
    const device2 = await app.call('GET', path(device), { token });
    expect(device2.body).toMatchObject({ engine: 'device', evaluation: null });
  });
});

describe('7 Errors: what is unknown, malformed or somebody else’s is 404', () => {
  test.each([
    ['GET', '/configuration', undefined],
    ['PUT', '/configuration', configuration],
    ['DELETE', '', undefined],
    ['POST', '/token', {}],
    ['GET', '/rejections', undefined],
    ['GET', '/evaluation', undefined],
  ])('%s /v2/devices/{deviceAuthUuid}%s', async (method, rest, body) => {
    const owner = await app.account();
    const device = await app.device(owner);
    const token = await app.account();
    const answers = await Promise.all(
      [device.uuid, randomUUID(), 'nothing'].map((id) =>
        app.call(method, `/v2/devices/${id}${rest}`, { token, body }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    const [foreign, unknown] = answers.map(({ body: { detail, title } }) => ({ detail, title }));
    expect(foreign).toEqual(unknown);
    expect((await app.call('GET', '/v2/devices', { token: owner })).body).toMatchObject({
      devices: [{ uuid: device.uuid, token: device.password, name: 'probe' }],
    });
  });
});
