import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, openApp, thresholdPurpose } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

type Message = { topic: string; payload: Record<string, unknown> };
type Answer = { messages: Message[]; after: string; timestamp: number };
type Poll = { wait?: number; topics?: string; after?: string };

/** In s. Longer than a test may take, so only something else can end the wait. */
const long = 60;

const showing = (puId: number, showText: string) => {
  const purpose = thresholdPurpose(puId, -100);
  const [state] = purpose.states;
  const [event] = state?.events ?? [];
  const events = [{ ...event, actions: { display: { showText } } }];
  return { ...purpose, states: [{ ...state, events }] };
};

describe('a device that polls over HTTP', () => {
  let service: TestService;
  let app: App;
  beforeAll(async () => {
    service = await testService();
    app = await openApp(service.url);
  });
  afterAll(() => service.close());

  const register = () => app.call<Registration>('POST', '/v2/devices', configuration);
  const install = (uuid: string, ...purposes: unknown[]) =>
    app.call<{ pId: string }>('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
  const stateOf = async (pId: string) => {
    type RollOut = { devices: { state: string }[] };
    return (await app.call<RollOut>('GET', `/v2/devices/profile/${pId}`)).devices[0]?.state;
  };
  const ask = (
    { deviceAuthUuid: uuid, deviceAuthToken }: Registration,
    poll: Poll | string = {},
    init: RequestInit = {},
  ) => {
    const query = typeof poll === 'string' ? poll : new URLSearchParams(poll as never);
    return fetch(`${service.url}/devices/${uuid}/down?${String(query)}`, {
      headers: { Authorization: `Bearer ${deviceAuthToken}` },
      ...init,
    });
  };
  async function poll(registration: Registration, query: Poll = {}): Promise<Answer> {
    const response = await ask(registration, query);
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  }
  async function send(
    { deviceAuthUuid, deviceAuthToken }: Registration,
    topic: string,
    body: unknown,
  ) {
    const response = await fetch(`${service.url}/devices/${deviceAuthUuid}/up/${topic}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${deviceAuthToken}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return response.status;
  }

  /** Sends again until a poll is answered, because a message is lost if no poll is waiting yet. */
  async function sendUntil(
    pending: Promise<Answer>,
    device: Registration,
    topic: string,
    body: unknown,
  ) {
    let isAnswered = false;
    const answered = pending.finally(() => (isAnswered = true));
    while (!isAnswered) {
      expect(await send(device, topic, body)).toBe(200);
      await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    return answered;
  }

  it('gets at once what it does not have, and waits for the rest', async () => {
    const device = await register();
    const first = await poll(device, { wait: long });
    const { device: named, module } = configuration;
    const ts = expect.any(Number);
    expect(first.messages).toEqual([
      { topic: 'configuration', payload: { device: named, module, ts } },
      { topic: 'state', payload: { puId: 0, stId: 0, ts } },
    ]);
    expect(first.timestamp).toEqual(ts);
    const { after } = first;
    expect(await poll(device, { after })).toEqual({ messages: [], after, timestamp: ts });
    // Without `after` it starts from the beginning.
    expect((await poll(device)).messages).toHaveLength(2);
    expect((await poll(device, { topics: 'display,errors' })).messages).toEqual([]);
  });

  it('gets a profile while it waits; the next poll acknowledges it', async () => {
    const device = await register();
    const { after } = await poll(device);
    const pending = poll(device, { wait: long, after });
    const { pId } = await install(device.deviceAuthUuid, thresholdPurpose(3, 30));
    const answer = await pending;
    expect(answer.messages).toMatchObject([{ topic: 'profile', payload: { pId } }]);
    expect(await stateOf(pId)).toBe('pending');
    // The answer may have been lost, so it is repeated until it is acknowledged.
    expect((await poll(device, { after })).messages).toEqual(answer.messages);
    const known = await poll(device, { after: answer.after });
    expect(known.messages).toEqual([]);
    expect(await stateOf(pId)).toBe('sent');
    expect((await poll(device, { after: known.after })).messages).toEqual([]);
    expect(await send(device, 'profile', { pId, state: 'current' })).toBe(200);
    expect(await stateOf(pId)).toBe('current');
    expect((await poll(device, { after: known.after })).messages).toMatchObject([
      { topic: 'state', payload: { puId: 3, stId: 1 } },
    ]);
  });

  it('has its own engine once it has taken the profile, and is a plain sensor before', async () => {
    const [taker, sensor] = [await register(), await register()];
    await poll(taker);
    await poll(sensor, { topics: 'display,state' });
    for (const device of [taker, sensor]) {
      const { pId } = await install(device.deviceAuthUuid, thresholdPurpose(3, 30));
      await send(device, 'measurements', { sId: '0x01', val: 1 });
      expect(await stateOf(pId)).toBe(device === taker ? 'pending' : 'current');
    }
  });

  it('gets its profile again if it asks for it while it waits', async () => {
    const device = await register();
    const { pId } = await install(device.deviceAuthUuid, thresholdPurpose(3, 30));
    const { after } = await poll(device);
    const pending = poll(device, { wait: long, after });
    const answer = await sendUntil(pending, device, 'profile', { state: 'request' });
    expect(answer.messages).toMatchObject([{ topic: 'profile', payload: { pId } }]);
  });

  it('gets texts, configurations, states and errors as they come', async () => {
    const device = await register();
    const uuid = device.deviceAuthUuid;
    let { after } = await poll(device, { topics: 'configuration,state,display,errors' });
    /** The answer to a waiting poll. What `does` causes may come in several answers. */
    const told = async (topic: string, does: (pending: Promise<Answer>) => Promise<unknown>) => {
      const asked = { wait: long, after, topics: `${topic},errors` };
      const pending = poll(device, asked);
      await does(pending);
      const answer = await pending;
      ({ after } = answer);
      return answer.messages.map((message) => [message.topic, message.payload]);
    };
    await install(uuid, showing(3, 'Close the window'));
    expect(
      await told('display', () => send(device, 'measurements', { sId: '0x01', val: 20 })),
    ).toEqual([['display', { text: 'Close the window', ts: expect.any(Number) }]]);
    const wrong = { sId: '?', val: 1 };
    expect(
      await told('errors', (pending) => sendUntil(pending, device, 'measurements', wrong)),
    ).toEqual([['errors', expect.objectContaining({ reason: 'unknown-sense' })]]);
    const next = { ...configuration, device: { name: 'Cellar' } };
    expect(
      await told('configuration', () => app.call('PUT', `/v2/devices/${uuid}/configuration`, next)),
    ).toEqual([['configuration', { ...next, ts: expect.any(Number) }]]);
  });

  it('gets a text until it has acknowledged it, over any protocol', async () => {
    const device = await register();
    await install(device.deviceAuthUuid, showing(3, 'Close the window'));
    await send(device, 'measurements', { sId: '0x01', val: 20 });
    const given = await poll(device, { topics: 'display' });
    expect(given.messages).toMatchObject([{ payload: { text: 'Close the window' } }]);
    const other = await connectDevice({ ...device, protocol: 'mqtt', port: service.mqttPort });
    await other.subscribe('down/display');
    expect(await other.receive('down/display')).toMatchObject({ text: 'Close the window' });
    await expect.poll(async () => (await poll(device, { topics: 'display' })).messages).toEqual([]);
    await other.end();
    expect((await poll(device, { topics: 'display', after: given.after })).messages).toEqual([]);
  });

  it('waits no longer than it asked for', async () => {
    const device = await register();
    const { after } = await poll(device);
    const beganMs = performance.now();
    const answer = await poll(device, { wait: 1, after });
    expect(answer).toMatchObject({ messages: [], after });
    expect(performance.now() - beganMs).toBeGreaterThan(950);
  });

  it('may wait twice at once: a third poll ends the first', async () => {
    const device = await register();
    const { after } = await poll(device);
    const [first, second] = [1, 2].map(() => poll(device, { wait: long, after }));
    const third = poll(device, { wait: long, after });
    const ended = await Promise.race([first, second]);
    expect(ended?.messages).toEqual([]);
    await install(device.deviceAuthUuid, thresholdPurpose(3, 30));
    const topics = (await Promise.all([first, second, third])).flatMap((answer) =>
      (answer?.messages ?? []).map(({ topic }) => topic),
    );
    expect(topics).toEqual(['profile', 'profile']);
  });

  it('is disconnected when its token is revoked, and not accepted again', async () => {
    const device = await register();
    const { after } = await poll(device);
    const pending = poll(device, { wait: long, after });
    const uuid = device.deviceAuthUuid;
    await app.call('POST', `/v2/devices/${uuid}/token`, { revoke: true });
    expect((await pending).messages).toEqual([]);
    expect((await ask(device, { after })).status).toBe(401);
  });

  it.each([
    ['wait=61', '/wait'],
    ['topics=profile,lamp', '/topics'],
    ['after=2', '/after'],
    ['after=1.p6f1c', '/after'],
    ["after=1.s1_'", '/after'],
    ['after=1.dA', '/after'],
    [`after=1.d${'1_'.repeat(200)}1`, '/after'],
  ])('is told what is wrong with %s', async (query, path) => {
    const response = await ask(await register(), query);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ errors: [{ path }] });
  });

  it('cannot acknowledge what it did not get', async () => {
    const device = await register();
    const other = await register();
    const { pId } = await install(device.deviceAuthUuid, thresholdPurpose(3, 30));
    const after = `1.p${pId.replaceAll('-', '')}.d1_2_3`;
    expect((await poll(other, { after })).messages).toHaveLength(2);
    expect(await stateOf(pId)).toBe('pending');
  });

  it('sends GET without a body, for its own messages only', async () => {
    const [device, other] = [await register(), await register()];
    const post = await ask(device, {}, { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET']);
    const { deviceAuthToken } = other;
    const headers = { Authorization: `Bearer ${deviceAuthToken}` };
    expect((await ask(device, {}, { headers })).status).toBe(401);
    const basic = `Basic ${btoa(`${other.deviceAuthUuid}:${deviceAuthToken}`)}`;
    expect((await ask(device, {}, { headers: { Authorization: basic } })).status).toBe(404);
  });
});
