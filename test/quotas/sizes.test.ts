import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, pathsOf, purpose, startApp, type App } from '../devices/app.ts';

const quotas = {
  sensesPerDevice: 3,
  nameLength: 5,
  textLength: 8,
  causesPerMeasurement: 2,
  profileBytes: 2_000,
  evidenceBytes: 1_000,
};
let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp({ quotas });
  token = await app.account();
});
afterAll(() => app.close());

const sense = (n: number) => ({ sId: `0x${n}` });
const module = (...senses: { sId: string }[]) => ({ moduleId: 'm', senses });
const small = { device: { name: 'probe' }, module: [module(sense(1))] };

async function refusedPaths(method: string, path: string, body: unknown) {
  const answer = await app.call(method, path, { token, body });
  expect(answer).toMatchObject({
    status: 400,
    body: { type: 'urn:sensorium:error:invalid-input' },
  });
  return pathsOf(answer.body);
}

describe('a device', () => {
  it.each([
    ['a name of 6 characters', { device: { name: 'probes' }, module: [] }, ['/device/name']],
    [
      'texts of 9',
      { device: { serial: 's'.repeat(9), swName: 's'.repeat(8) }, module: [] },
      ['/device/serial'],
    ],
    [
      'names in modules',
      {
        device: {},
        module: [{ moduleId: 'a name', moduleName: 'a name', senses: [{ sId: '0x12345' }] }],
      },
      ['/module/0/moduleId', '/module/0/moduleName', '/module/0/senses/0/sId'],
    ],
    [
      'four senses',
      { device: {}, module: [module(sense(1), sense(2)), module(sense(3), sense(4))] },
      ['/module'],
    ],
    ['four modules', { device: {}, module: [1, 2, 3, 4].map(() => module()) }, ['/module']],
  ])('is refused with the places: %s', async (_name, body, expected) => {
    expect(await refusedPaths('POST', '/v2/devices', body)).toEqual(expected);
    const { uuid } = await app.device(token, small);
    const path = `/v2/devices/${uuid}/configuration`;
    expect(await refusedPaths('PUT', path, body)).toEqual(expected);
    const { body: described } = await app.call('GET', path, { token });
    expect(described).toMatchObject(small);
  });

  it('counts names in characters, not in bytes', async () => {
    const body = { device: { name: '🌡️🌡🌡🌡' }, module: [] };
    expect((await app.call('POST', '/v2/devices', { token, body })).status).toBe(200);
  });
});

describe('a purpose', () => {
  const named = (name: string, text: string) => ({
    puId: 1,
    name,
    initStId: 1,
    states: [
      {
        stId: 1,
        name,
        events: [
          {
            evId: 1,
            name,
            causes: [{ sId: name, thresholds: { isAny: true } }],
            actions: { sms: { text, phoneNumber: [] }, display: { showText: text } },
          },
        ],
      },
    ],
  });
  const wrong = named('a name', 'some text');
  const places = [
    '/name',
    '/states/0/name',
    '/states/0/events/0/name',
    '/states/0/events/0/actions/sms/text',
    '/states/0/events/0/actions/display/showText',
    '/states/0/events/0/causes/0/sId',
  ];
  const right = named('name', 'any text');

  it('is refused with the places of names and texts that are too long', async () => {
    expect(await refusedPaths('POST', '/v2/purposes', wrong)).toEqual(places);
    const { body } = await app.call('POST', '/v2/purposes', { token, body: right });
    const path = `/v2/purposes/${String(body['purposeUuid'])}`;
    expect(await refusedPaths('PUT', path, wrong)).toEqual(places);
    const { uuid } = await app.device(token, small);
    const install = { deviceAuthUuids: [uuid], purposes: [wrong] };
    expect(await refusedPaths('POST', '/v2/devices/profile', install)).toEqual(
      places.map((place) => `/purposes/0${place}`),
    );
  });

  it('that was stored before can still be installed', async () => {
    const { uuid } = await app.device(token, small);
    const { rows } = await app.db.query<{ id: string }>(
      'insert into purpose (account_id, body) values ($1, $2) returning id',
      [token, wrong],
    );
    const body = { deviceAuthUuids: [uuid], purposeUuids: [rows[0]?.id] };
    const answer = await app.call('POST', '/v2/devices/profile', { token, body });
    expect(answer.status).toBe(200);
  });
});

describe('a profile', () => {
  const cause = { sId: '0x1', thresholds: { isAny: true } };
  const event = (evId: number, causes: unknown[]) => ({ evId, causes });
  const of = (...events: unknown[]) => ({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });

  it.each([
    ['3 causes on one sense', of(event(1, [cause, cause]), event(2, [cause])), '/states/0'],
    [
      'evidence of 1,000 measurements',
      of(event(1, [{ ...cause, measurement: { count: 1_000 } }])),
      '/states/0',
    ],
  ])('is refused when it is installed: %s', async (_name, purpose, place) => {
    const stored = await app.call('POST', '/v2/purposes', { token, body: purpose });
    const { uuid } = await app.device(token, small);
    const install = {
      deviceAuthUuids: [uuid],
      purposeUuids: [String(stored.body['purposeUuid'])],
      purposes: [{ ...of(), puId: 2 }],
    };
    expect(await refusedPaths('POST', '/v2/devices/profile', install)).toEqual([
      `/purposeUuids/0${place}`,
    ]);
    const path = `/v2/devices/${uuid}/configuration`;
    expect((await app.call('GET', path, { token })).body).toMatchObject({ pendingProfile: {} });
  });

  it('is refused over its limit of bytes', async () => {
    const { uuid } = await app.device(token, small);
    const purposes = Array.from({ length: 40 }, (_, puId) => ({ ...of(), puId }));
    const install = { deviceAuthUuids: [uuid], purposes };
    expect(await refusedPaths('POST', '/v2/devices/profile', install)).toEqual(['']);
  });
});

it('an account without limits of its own has the usual ones', async () => {
  const usual = await startApp();
  const owner = await usual.account();
  const { uuid } = await usual.device(owner, configuration);
  await usual.install(owner, [uuid], [purpose(1)]);
  await usual.close();
});
