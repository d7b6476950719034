import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../api-keys/open-key.ts';
import { type App, configuration, type Registration, send } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openAccount, openStream } from './readers.ts';

describe('a stream of commands', () => {
  let service: TestService;
  beforeAll(async () => void (service = await testService()));
  afterAll(() => service?.close());

  const register = (app: App) => app.call<Registration>('POST', '/v2/devices', configuration);
  const give = ({ deviceAuthUuid }: Registration, app: App, name: string) =>
    app.call<{ commandId: string }>('POST', `/v2/devices/${deviceAuthUuid}/commands`, { name });
  const open = async (app: App, filters: object = {}, lastEventId?: string) => {
    const { url } = await app.call<{ url: string }>('POST', '/v2/streams', {
      kinds: ['commands'],
      filters,
    });
    return openStream(service.url + url, null, lastEventId);
  };

  test('tells each state, to those who may know', async () => {
    const { app } = await openAccount(service.url);
    const stranger = await openAccount(service.url);
    const [mine, foreign] = [await open(app), await open(stranger.app)];
    const registration = await register(app);
    const { commandId } = await give(registration, app, 'restart');
    const { deviceAuthUuid } = registration;
    const told = { commandId, deviceAuthUuid, name: 'restart' };
    expect(await mine.untilNamed('command', 1)).toEqual([{ ...told, state: 'queued' }]);
    const device = await connectDevice(registration);
    await device.publish('up/command', { commandId, state: 'running', progress: 40 });
    const [, running] = await mine.untilNamed('command', 2);
    expect(running).toEqual({ ...told, state: 'running', progress: 40 });
    await device.end();
    await app.call('DELETE', `/v2/devices/${deviceAuthUuid}/commands/${commandId}`);
    const [, , cancelled] = await mine.untilNamed('command', 3);
    expect(cancelled).toMatchObject({ ...told, state: 'cancelled' });
    expect(foreign.named('command')).toEqual([]);
    mine.close();
    foreign.close();
  });

  test('carries only the devices that its filter selects', async () => {
    const { app } = await openAccount(service.url);
    const [one, other] = [await register(app), await register(app)];
    const stream = await open(app, { devices: [one.deviceAuthUuid] });
    await give(other, app, 'unseen');
    await give(one, app, 'seen');
    const told = await stream.untilNamed('command', 1);
    expect(told.map(({ name }) => name)).toEqual(['seen']);
    stream.close();
  });

  test('says after a resumption that the list is to be read again', async () => {
    const { app } = await openAccount(service.url);
    const stream = await open(app, {}, 'c=1');
    expect(await stream.untilNamed('commands', 1)).toEqual([{ reason: 'missed' }]);
    stream.close();
  });

  test('needs the scope of commands', async () => {
    const { app } = await openAccount(service.url);
    const { key } = await makeKey(app, { scopes: ['data:read', 'devices:read'] });
    const asked = { kinds: ['commands'] };
    const refused = await send(`${service.url}/v2/streams`, 'POST', asked, key);
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain('commands:read');
  });
});
