import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, configuration, openApp, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';

type Command = {
  commandId: string;
  state: string;
  name: string;
  result?: unknown;
  text?: string;
  late?: { state: string };
  sent?: boolean;
  createdTs: number;
  sentTs?: number;
  acceptedTs?: number;
  endedTs?: number;
};

describe('commands', () => {
  let service: TestService;
  let app: App;
  beforeAll(async () => {
    service = await testService();
    app = await openApp(service.url);
  });
  afterAll(() => service.close());

  const register = () => app.call<Registration>('POST', '/v2/devices', configuration);
  const pathOf = ({ deviceAuthUuid }: Registration) => `/v2/devices/${deviceAuthUuid}/commands`;
  const give = (device: Registration, body: object, query = '') =>
    app.call<Command>('POST', `${pathOf(device)}${query}`, body);
  const read = (device: Registration, { commandId }: Command, query = '') =>
    app.call<Command>('GET', `${pathOf(device)}/${commandId}${query}`);
  const cancel = (device: Registration, { commandId }: Command) =>
    app.call<Command>('DELETE', `${pathOf(device)}/${commandId}`);
  const errorOf = async (asked: Promise<unknown>): Promise<string> => {
    try {
      await asked;
    } catch (error) {
      return String(error);
    }
    return 'no error';
  };

  it('reach a connected device, whose answer ends the wait of the caller', async () => {
    const registration = await register();
    const device = await connectDevice(registration);
    await device.subscribe('down/command');
    const given = give(registration, { name: 'open-valve', params: { mm: 40 } }, '?wait=25');
    const down = await device.receive('down/command');
    expect(down).toEqual({
      commandId: expect.any(String),
      name: 'open-valve',
      params: { mm: 40 },
      sentTs: expect.any(Number),
      expiresTs: expect.any(Number),
    });
    const { commandId } = down;
    await device.publish('up/command', { commandId, state: 'accepted' });
    await device.publish('up/command', { commandId, state: 'running', progress: 50 });
    await device.publish('up/command', { commandId, state: 'done', result: { openedMm: 40 } });
    const ended = await given;
    expect(ended).toMatchObject({ commandId, state: 'done', result: { openedMm: 40 } });
    const times = [ended.createdTs, ended.sentTs, ended.acceptedTs, ended.endedTs];
    expect(times.filter((ts) => ts !== undefined)).toEqual(
      times.filter((ts) => ts !== undefined).toSorted((one, other) => one - other),
    );
    await device.publish('up/command', { commandId, state: 'done', result: 'again' });
    await device.publish('up/command', { commandId, state: 'accepted' });
    expect(await read(registration, ended)).toEqual({ ...ended, timestamp: expect.any(Number) });
    await device.end();
  });

  it('wait for the answer to the one before, and come again at each subscription', async () => {
    const registration = await register();
    const [first, second] = [
      await give(registration, { name: 'first' }),
      await give(registration, { name: 'second' }),
    ];
    expect(first.state).toBe('queued');
    const device = await connectDevice(registration);
    await device.subscribe('down/command');
    expect(await device.receive('down/command')).toMatchObject({ commandId: first.commandId });
    await expect
      .poll(async () => (await read(registration, first)).state, { timeout: 20_000 })
      .toBe('sent');
    expect(device.received).toEqual([]);
    await device.end();
    const again = await connectDevice(registration);
    await again.subscribe('down/#');
    expect(await again.receive('down/command')).toMatchObject({ commandId: first.commandId });
    await again.publish('up/command', { commandId: first.commandId, state: 'accepted' });
    expect(await again.receive('down/command')).toMatchObject({ commandId: second.commandId });
    await again.end();
    const third = await connectDevice(registration);
    await third.subscribe('down/#');
    // What is accepted is not sent again: a device that restarts would restart for ever.
    expect(await third.receive('down/command')).toMatchObject({ commandId: second.commandId });
    await third.end();
  });

  it('are cancelled before they leave, and not afterwards', async () => {
    const registration = await register();
    const [waiting, next] = [
      await give(registration, { name: 'one' }),
      await give(registration, { name: 'two' }),
    ];
    expect(await cancel(registration, waiting)).toMatchObject({ state: 'cancelled', sent: false });
    const device = await connectDevice(registration);
    await device.subscribe('down/command');
    const down = await device.receive('down/command');
    expect(down).toMatchObject({ commandId: next.commandId });
    expect(await cancel(registration, next)).toMatchObject({ state: 'cancelled', sent: true });
    await device.publish('up/command', { ...down, state: 'done', text: 'too late' });
    expect(await read(registration, next)).toMatchObject({
      state: 'cancelled',
      late: { state: 'done', text: 'too late' },
    });
    await device.end();
  });

  it('expire, and never leave afterwards', async () => {
    const registration = await register();
    const command = await give(registration, { name: 'soon', expiresTs: Date.now() + 300 });
    const ended = await read(registration, command, '?wait=25');
    expect(ended).toMatchObject({ state: 'expired' });
    const next = await give(registration, { name: 'next' });
    const device = await connectDevice(registration);
    await device.subscribe('down/command');
    expect(await device.receive('down/command')).toMatchObject({ commandId: next.commandId });
    await device.end();
  });

  it('refuses an answer to what the device was not told', async () => {
    const [mine, other] = [await register(), await register()];
    const foreign = await give(other, { name: 'for-another' });
    const device = await connectDevice(mine);
    await device.subscribe('down/errors');
    await device.publish('up/command', { commandId: foreign.commandId, state: 'done' });
    expect(await device.receive('down/errors')).toMatchObject({ reason: 'unknown-command' });
    expect(await read(other, foreign)).toMatchObject({ state: 'queued' });
    await device.end();
  });

  it('keeps what is hostile in an answer apart', async () => {
    const registration = await register();
    const command = await give(registration, { name: 'say' });
    const device = await connectDevice(registration);
    await device.subscribe('down/errors');
    const { commandId } = command;
    const text = `=1+1\0<b>${'x'.repeat(2_000)}`;
    const deep = JSON.parse('['.repeat(40) + ']'.repeat(40)) as unknown;
    await device.publish('up/command', { commandId, state: 'running', result: deep });
    expect(await device.receive('down/errors')).toMatchObject({ path: '/result' });
    await device.publish('up/command', { commandId, state: 'done', text, result: '\ud800\0' });
    const kept = await read(registration, command);
    expect(kept).toMatchObject({ state: 'done', result: '\ud800\0' });
    expect(kept.text).toHaveLength(1_024);
    expect(kept.text).toMatch(/^=1\+1\uFFFD<b>x/);
    await device.end();
  });

  it('are given over HTTP to a device that polls, again until it has them', async () => {
    const registration = await register();
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = registration;
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    type Polled = { messages: { topic: string; payload: { commandId: string } }[]; after: string };
    const poll = async (after: string, wait = 0): Promise<Polled> => {
      const query = new URLSearchParams({ topics: 'command', after, wait: String(wait) });
      const url = `${service.url}/devices/${uuid}/down?${query.toString()}`;
      return (await (await fetch(url, { headers })).json()) as Polled;
    };
    const idsOf = ({ messages }: Polled) => messages.map(({ payload }) => payload.commandId);
    const answer = async (commandId: string, state: string) => {
      const body = JSON.stringify({ commandId, state });
      const url = `${service.url}/devices/${uuid}/up/command`;
      return (await fetch(url, { method: 'POST', headers, body })).status;
    };
    const begun = await poll('');
    const waiting = poll(begun.after, 30);
    const first = await give(registration, { name: 'first' });
    const second = await give(registration, { name: 'second' });
    const got = await waiting;
    expect(idsOf(got)).toEqual([first.commandId]);
    // The answer was lost: it asks with what it has.
    expect(idsOf(await poll(begun.after))).toEqual([first.commandId]);
    expect(await read(registration, first)).toMatchObject({ state: 'queued' });
    expect(idsOf(await poll(got.after))).toEqual([]);
    expect(await read(registration, first)).toMatchObject({ state: 'sent' });
    const next = poll(got.after, 30);
    expect(await answer(first.commandId, 'done')).toBe(200);
    expect(idsOf(await next)).toEqual([second.commandId]);
    // A device that begins anew gets what it has not answered.
    expect(idsOf(await poll(''))).toEqual([second.commandId]);
  });

  it('are listed, newest first, by state and name, and audited', async () => {
    const registration = await register();
    const names = ['a', 'b', 'c'];
    for (const name of names) await give(registration, { name, reason: 'to see' });
    const page = await app.page(`${pathOf(registration)}?limit=2`);
    const { commands } = page.body as { commands: Command[] };
    expect(commands.map(({ name }) => name)).toEqual(['c', 'b']);
    const rest = await app.page(page.next ?? '');
    expect((rest.body as { commands: Command[] }).commands).toMatchObject([{ name: 'a' }]);
    expect(rest.next).toBeUndefined();
    const { deviceAuthUuid: uuid } = registration;
    const found = await app.call('GET', `/v2/commands?devices=${uuid}&name=b&state=queued,sent`);
    expect(found.commands).toMatchObject([{ name: 'b', deviceAuthUuid: uuid, reason: 'to see' }]);
    const audit = await app.call('GET', '/v2/accounts/audit?kinds=command-given&limit=1');
    expect(audit.entries).toMatchObject([{ by: 'session', details: { name: 'c' } }]);
  });

  it('go with their device', async () => {
    const registration = await register();
    const command = await give(registration, { name: 'never' });
    await app.call('DELETE', `/v2/devices/${registration.deviceAuthUuid}`);
    expect(await errorOf(read(registration, command))).toMatch(/^Error: 404/);
    const { commands } = await app.call<{ commands: Command[] }>('GET', '/v2/commands?name=never');
    expect(commands).toEqual([]);
  });

  it('are refused beyond the quota of a device, and with a wrong time', async () => {
    const registration = await register();
    const now = Date.now();
    for (const expiresTs of [now - 1_000, now + 32 * 86_400_000])
      expect(await errorOf(give(registration, { name: 'x', expiresTs }))).toMatch(/400.*31 days/s);
    expect(await errorOf(give(registration, { name: 'Upper' }))).toMatch(/400/);
    await Promise.all(Array.from({ length: 100 }, () => give(registration, { name: 'x' })));
    expect(await errorOf(give(registration, { name: 'x' }))).toMatch(/commandsPerDevice/);
  });
});
