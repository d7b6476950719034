import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, registerAccount } from '../../bench/api.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { configuration, thresholdPurpose, type Registration } from '../journeys/app.ts';
import { hasRedis } from '../support/redis.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

type Answer = { messages: { topic: string; payload: Record<string, unknown> }[]; after: string };

const purpose = (puId: number) => {
  const { states, ...rest } = thresholdPurpose(puId, -100);
  const actions = { display: { showText: `text ${puId}` } };
  return {
    ...rest,
    states: states.map((state) => ({
      ...state,
      events: state.events.map((event) => ({ ...event, actions })),
    })),
  };
};

describe.skipIf(!hasRedis)(
  'devices that poll at one of two connectors',
  { timeout: 60_000 },
  () => {
    let installation: Installation;
    let api: ServiceProcess;
    let connectors: [ServiceProcess, ServiceProcess];
    let token: string;
    beforeAll(async () => {
      installation = await startInstallation({
        apis: 1,
        connectors: [1, 2].map((id) => ({
          kind: 'http',
          id,
          name: `connector-${id}`,
          protocol: 'http',
          host: '127.0.0.1',
          port: 8_080,
        })),
      });
      [api] = installation.apis as [ServiceProcess];
      connectors = installation.connectors as typeof connectors;
      ({ token } = await registerAccount(api.url));
    });
    afterAll(() => installation.close());

    const register = () =>
      call<Registration>(api.url, 'POST', '/v2/devices', {
        token,
        body: { ...configuration, protocol: 'http' },
      });
    const install = (uuid: string, puId: number) =>
      call<{ pId: string }>(api.url, 'POST', '/v2/devices/profile', {
        token,
        body: { deviceAuthUuids: [uuid], purposes: [purpose(puId)] },
      });
    const ask = ({ deviceAuthUuid, deviceAuthToken }: Registration, at: number, query: string) =>
      fetch(`${connectors[at]?.url}/devices/${deviceAuthUuid}/down?${query}`, {
        headers: { Authorization: `Bearer ${deviceAuthToken}` },
      });
    const poll = async (...asked: Parameters<typeof ask>) =>
      (await (await ask(...asked)).json()) as Answer;
    const measure = async ({ deviceAuthUuid, deviceAuthToken }: Registration, at: number) => {
      const { status } = await fetch(
        `${connectors[at]?.url}/devices/${deviceAuthUuid}/up/measurements`,
        {
          method: 'POST',
          headers: {
            Authorization: `Bearer ${deviceAuthToken}`,
            'Content-Type': 'application/json',
          },
          body: '{"sId":"0x01","val":21}',
        },
      );
      expect(status).toBe(200);
    };

    it('get a profile within a second, whichever connector they wait on', async () => {
      for (const at of [0, 1]) {
        const device = await register();
        const { after } = await poll(device, at, '');
        const pending = poll(device, at, `wait=60&after=${after}`);
        const { pId } = await install(device.deviceAuthUuid, 3);
        const installedMs = performance.now();
        const { messages } = await pending;
        expect(messages).toMatchObject([{ topic: 'profile', payload: { pId } }]);
        expect(performance.now() - installedMs).toBeLessThan(1_000);
      }
    });

    it('get texts that another connector stored, and acknowledge them at the other', async () => {
      const device = await register();
      await install(device.deviceAuthUuid, 3);
      const pending = poll(device, 1, 'wait=60&topics=display');
      await measure(device, 0);
      const { messages, after } = await pending;
      expect(messages).toMatchObject([{ topic: 'display', payload: { text: 'text 3' } }]);
      expect((await poll(device, 1, 'topics=display')).messages).toEqual(messages);
      expect((await poll(device, 0, `topics=display&after=${after}`)).messages).toEqual([]);
      expect((await poll(device, 1, 'topics=display')).messages).toEqual([]);
    });

    it('are answered when their connector stops, and find their texts after a crash', async () => {
      const device = await register();
      await install(device.deviceAuthUuid, 4);
      await measure(device, 0);
      const { after } = await poll(device, 1, 'topics=state');
      const pending = ask(device, 1, `wait=60&topics=state&after=${after}`);
      // Whether it waits already cannot be seen from outside. A poll that comes too late is refused instead.
      const stopped = connectors[1].terminate();
      expect([200, 503]).toContain((await pending).status);
      expect(await stopped).toBe(0);
      await Promise.all([connectors[0].kill(), connectors[1].start()]);
      expect((await poll(device, 1, 'topics=display')).messages).toMatchObject([
        { payload: { text: 'text 4' } },
      ]);
      await connectors[0].start();
    });
  },
);
