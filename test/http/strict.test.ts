import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Warning } from '../../src/contract/warnings.ts';
import { call, type Answer } from '../accounts/app.ts';
import { type TestService, testService } from '../journeys/service.ts';

let service: TestService;
let token: string;
let uuid: string;
beforeAll(async () => {
  service = await testService();
  const credentials = { email: 'strict@example.com', password: 'correct horse' };
  const account = await send('POST', '/v2/accounts', credentials);
  token = String(account.body['accountAuthToken']);
  const device = await send('POST', '/v2/devices', { device: {}, module: [] });
  uuid = String(device.body['deviceAuthUuid']);
});
afterAll(() => service.close());

const send = (method: string, path: string, body?: unknown) =>
  call(service.url, method, path, { ...(token ? { token } : {}), body });

const warningsOf = ({ body }: Answer) => (body['warnings'] ?? []) as Warning[];
const pairs = (answer: Answer) => warningsOf(answer).map(({ path, meant }) => [path, meant]);
const errorsOf = ({ body }: Answer) => body['errors'] as { path: string; message: string }[];

let accounts = 0;
const configuration = (name: object, sense: object = {}) => ({
  device: { name: 'probe', ...name },
  module: [{ moduleId: 'm', senses: [{ sId: '0x1', ...sense }] }],
});
const purpose = (thresholds: object, actions: object = {}) => ({
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [{ evId: 1, causes: [{ sId: '0x1', thresholds }], actions }] }],
});
const at = '/states/0/events/0';

/** Each route that warns of unknown members: a body with two of them, and a valid one. */
const routes: [
  name: string,
  method: string,
  path: () => string,
  wrong: () => object,
  sound: () => object,
  meant: [string, string | undefined][],
][] = [
  [
    'Register New Purpose',
    'POST',
    () => '/v2/purposes',
    () => purpose({ isAbove: 1, isLt: 3 }, { email: {} }),
    () => purpose({ isGt: 1 }),
    [
      [`${at}/causes/0/thresholds/isAbove`, 'isGt'],
      [`${at}/actions/email`, 'cloud.sendPush'],
    ],
  ],
  [
    'Install device profile',
    'POST',
    () => '/v2/devices/profile',
    () => ({ deviceAuthUuids: [uuid], purposes: [purpose({ isAny: true, colour: 1 })], device: 1 }),
    () => ({ deviceAuthUuids: [uuid], purposes: [purpose({ isAny: true })] }),
    [
      [`/purposes/0${at}/causes/0/thresholds/colour`, undefined],
      ['/device', undefined],
    ],
  ],
  [
    'Register Device',
    'POST',
    () => '/v2/devices',
    () => configuration({ names: 'x' }, { minimum: 1 }),
    () => configuration({}),
    [
      ['/device/names', 'name'],
      ['/module/0/senses/0/minimum', undefined],
    ],
  ],
  [
    'Update Configuration',
    'PUT',
    () => `/v2/devices/${uuid}/configuration`,
    () => configuration({ hwversion: '1' }, { units: 'C' }),
    () => configuration({}),
    [
      ['/device/hwversion', 'hwVersion'],
      ['/module/0/senses/0/units', 'unit'],
    ],
  ],
  [
    'Register New Account',
    'POST',
    () => '/v2/accounts',
    () => ({
      email: `a${++accounts}@example.com`,
      password: 'correct horse',
      mail: 1,
      pasword: 'x',
    }),
    () => ({ email: `a${++accounts}@example.com`, password: 'correct horse' }),
    [
      ['/mail', 'email'],
      ['/pasword', 'password'],
    ],
  ],
  [
    'Update Account',
    'PUT',
    () => '/v2/accounts',
    () => ({ fcm: [], timezone: 'UTC' }),
    () => ({ name: 'Jo' }),
    [
      ['/fcm', 'apn'],
      ['/timezone', 'timeZone'],
    ],
  ],
  [
    'Replace contacts',
    'PUT',
    () => '/v2/accounts/contacts',
    () => ({ webhook: [], emails: [{ address: 'b@example.com', label: [] }] }),
    () => ({ emails: [] }),
    [
      ['/webhook', 'webhooks'],
      ['/emails/0/label', 'labels'],
    ],
  ],
];

describe.each(routes)('%s', (_name, method, path, wrong, sound, meant) => {
  test('warns of unknown members, each with the name that was meant', async () => {
    const answer = await send(method, path(), wrong());
    expect(answer.status).toBe(200);
    const unknown = warningsOf(answer).filter(({ code }) => code === 'unknown-member');
    expect(unknown.map(({ path: where, meant: name }) => [where, name]).toSorted()).toEqual(
      meant.toSorted(),
    );
  });

  test('refuses them with ?strict=true, lists all of them, and accepts a valid body', async () => {
    const refused = await send(method, `${path()}?strict=true`, wrong());
    expect(refused.status).toBe(400);
    expect(
      errorsOf(refused)
        .map((each) => each.path)
        .toSorted(),
    ).toEqual(meant.map(([where]) => where).toSorted());
    const taken = await send(method, `${path()}?strict=true`, sound());
    expect(taken.status).toBe(200);
    expect(pairs(taken).filter(([where]) => meant.some(([known]) => known === where))).toEqual([]);
  });
});

test('strict lists invalid and unknown members together; its value is true or false', async () => {
  const wrong = { ...purpose({ isGt: 'hot', isAbove: 1 }) };
  const refused = await send('POST', '/v2/purposes?strict=true', wrong);
  const causes = `${at}/causes/0/thresholds`;
  expect(errorsOf(refused).map(({ path }) => path)).toEqual([
    `${causes}/isGt`,
    `${causes}/isAbove`,
  ]);
  expect((await send('POST', '/v2/purposes?strict=yes', purpose({}))).status).toBe(400);
  expect((await send('POST', '/v2/purposes?strict=false', purpose({ x: 1 }))).status).toBe(200);
});

test('the answer to an invalid body lists unknown members too, without ?strict: they may be misspellings', async () => {
  const wrong = purpose({ isGt: 1 });
  const [event] = wrong.states[0]?.events ?? [];
  Object.assign(event?.causes[0] ?? {}, { threshold: { over: { stat: 'avg', windowMs: 9 } } });
  const errors = errorsOf(await send('POST', '/v2/purposes', wrong));
  const over = `${at}/causes/0/threshold/over`;
  expect(errors).toEqual([
    { path: `${over}/ms`, message: 'expected number, found nothing' },
    { path: `${over}/windowMs`, message: expect.stringContaining('unknown member windowMs') },
  ]);
});

test('answers to which the specification gives no warnings have no such member when there are none', async () => {
  const configured = await send('PUT', `/v2/devices/${uuid}/configuration`, configuration({}));
  expect(Object.keys(configured.body)).toEqual(['timestamp']);
  const updated = await send('PUT', '/v2/accounts', { name: 'Jo', 'x-note': 1 });
  expect(Object.keys(updated.body)).toEqual(['timestamp']);
});

test('a device or contacts can be sent back as they were read', async () => {
  const path = `/v2/devices/${uuid}/configuration`;
  await send('POST', '/v2/devices/profile', {
    deviceAuthUuids: [uuid],
    purposes: [purpose({ isAny: true })],
  });
  const device = await send('GET', path);
  expect(device.body).toMatchObject({ pendingProfile: { pId: expect.any(String) } });
  expect((await send('PUT', `${path}?strict=true`, device.body)).status).toBe(200);
  await send('PUT', '/v2/accounts/contacts', { emails: [{ address: 'c@example.com' }] });
  const contacts = await send('GET', '/v2/accounts/contacts');
  const saved = await send('PUT', '/v2/accounts/contacts?strict=true', contacts.body);
  expect(saved).toMatchObject({ status: 200, body: { emails: [{ address: 'c@example.com' }] } });
});

describe('telephone numbers', () => {
  const calling = (phoneNumber: string[]) =>
    purpose({ isAny: true }, { sms: { text: 'Hot', phoneNumber } });
  const path = `${at}/actions/sms/phoneNumber/1`;

  test('are stored without separators; an invalid one causes a warning, or an error with ?strict=true', async () => {
    const sent = calling(['+420 123-456.789', '0800 PIZZA']);
    const stored = await send('POST', '/v2/purposes', sent);
    expect(stored.status).toBe(200);
    expect(warningsOf(stored)).toContainEqual(
      expect.objectContaining({ path, code: 'number-form' }),
    );
    const read = await send('GET', `/v2/purposes/${String(stored.body['purposeUuid'])}`);
    expect(read.text).toContain('["+420123456789","0800 PIZZA"]');
    const refused = await send('POST', '/v2/purposes?strict=true', sent);
    expect(refused.status).toBe(400);
    expect(errorsOf(refused)).toMatchObject([{ path }]);
    const sound = await send('POST', '/v2/purposes?strict=true', calling(['+420 123']));
    expect(sound.status).toBe(200);
  });

  test('the same when a profile is installed', async () => {
    const body = { deviceAuthUuids: [uuid], purposes: [calling(['+4201', 'nobody'])] };
    const installed = await send('POST', '/v2/devices/profile', body);
    expect(warningsOf(installed).filter(({ code }) => code === 'number-form')).toMatchObject([
      { path: `/purposes/0${path}` },
    ]);
    expect((await send('POST', '/v2/devices/profile?strict=true', body)).status).toBe(400);
  });
});

test('a polygon round a pole causes a warning, one across the 180th meridian does not', async () => {
  const inside = (...longs: number[]) =>
    purpose({ isInsideGeo: longs.map((long) => ({ lat: 80, long })) });
  const round = await send('POST', '/v2/purposes?strict=true', inside(0, 90, 180, -90));
  expect(round.status).toBe(200);
  expect(warningsOf(round)).toMatchObject([
    { path: `${at}/causes/0/thresholds/isInsideGeo`, code: 'polygon-round-pole' },
  ]);
  for (const longs of [
    [170, 175, -170],
    [-170, 170, 175],
    [0, 10, 5],
    [-120, 0, 0.5],
  ])
    expect(warningsOf(await send('POST', '/v2/purposes', inside(...longs)))).toEqual([]);
});
