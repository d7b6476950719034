import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasRedis } from '../support/redis.ts';
import { haproxyProgram, startShippedHaproxy, type ShippedHaproxy } from './shipped-haproxy.ts';
import { startInstallation, type Installation } from './world.ts';

const uplink = (id: number): ConnectorSettings => {
  const reached = { protocol: 'http' as const, host: null, port: null };
  return { kind: 'http', id, name: `connector-${id}`, ...reached };
};

describe.skipIf(haproxyProgram === null || !hasRedis)(
  'HTTP uplink behind the shipped HAProxy',
  () => {
    let installation: Installation;
    let haproxy: ShippedHaproxy;
    let app: App;
    let device: Registration;

    beforeAll(async () => {
      installation = await startInstallation({
        apis: 1,
        connectors: [uplink(4), uplink(5)],
        settings: { http: { trustedProxies: ['127.0.0.1'] } },
      });
      const { apis, connectors } = installation;
      haproxy = await startShippedHaproxy(makeTemporaryDir(), {
        apis,
        connectors: [],
        uplinks: connectors,
      });
      app = await openApp(haproxy.url);
      device = await app.call<Registration>('POST', '/v2/devices', {
        ...configuration,
        protocol: 'http',
      });
    });
    afterAll(async () => {
      await haproxy?.close();
      await installation?.close();
    });

    const path = () => `/devices/${device.deviceAuthUuid}/up/measurements`;
    const post = (payload: unknown) =>
      fetch(haproxy.url + path(), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${device.deviceAuthToken}`,
        },
        body: JSON.stringify(payload),
        signal: AbortSignal.timeout(15_000),
      });
    const listValues = async () => {
      const { measurements } = await app.call<{ measurements: { sId: string; val: number }[] }>(
        'GET',
        `/v2/measurements/${device.deviceAuthUuid}?limit=1000`,
      );
      return measurements.filter(({ sId }) => sId === '0x02').map(({ val }) => val);
    };

    test('what was answered is stored once, while one process after the other is killed', async () => {
      const firstTs = Date.now() - 600_000;
      let answered = 0;
      const sendUntilAnswered = async (n: number) => {
        for (;;) {
          const response = await post({ sId: '0x02', val: n, ts: firstTs + n }).catch(() => null);
          const body = (await response?.json().catch(() => null)) as Record<string, number> | null;
          if (response?.status !== 200 || !body) continue;
          expect([body['stored'], body['repeated']].toSorted()).toEqual([0, 1]);
          answered += 1;
          return;
        }
      };
      const next = Array.from({ length: 400 }, (_, n) => n).values();
      const workers = Array.from({ length: 8 }, async () => {
        for (const n of next) await sendUntilAnswered(n);
      });
      for (const [n, one] of installation.connectors.entries()) {
        await expect.poll(() => answered, { timeout: 60_000 }).toBeGreaterThan(100 * (n + 1));
        await one.kill();
        await one.start();
      }
      await Promise.all(workers);
      const values = await listValues();
      expect(values.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, n) => n));
    });

    test('nothing is stored that the proxy did not see as a request', async () => {
      const before = (await listValues()).length;
      const body = (val: number) => JSON.stringify({ sId: '0x02', val, ts: Date.now() - val });
      const request = (headers: string[], content: string) =>
        [
          `POST ${path()} HTTP/1.1`,
          'Host: x',
          `Authorization: Bearer ${device.deviceAuthToken}`,
          ...headers,
          '',
          content,
        ].join('\r\n');
      const hidden = request([`Content-Length: ${body(9_999).length}`], body(9_999));
      const chunked = `0\r\n\r\n${hidden}`;
      const both = [`Content-Length: ${chunked.length}`, 'Transfer-Encoding: chunked'];
      const odd = [`Content-Length: ${chunked.length}`, 'Transfer-Encoding: xchunked'];
      for (const headers of [both, odd, [...both].toReversed()]) {
        const said = await talk(haproxy.url, request(headers, chunked));
        const stored = [...said.matchAll(/"stored":1/g)].length;
        expect((await listValues()).length - before).toBe(stored);
        // The proxy takes what follows for a request of its own, or ends the connection.
        expect([...said.matchAll(/^HTTP\/1\.1 /gm)].length).toBeGreaterThanOrEqual(stored);
      }
    });
  },
);

/** Writes it, and gives what was said until the connection ended or was silent for a second. */
async function talk(url: string, text: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port) });
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
  socket.setTimeout(1_000, () => socket.destroy());
  socket.write(text);
  await once(socket, 'close');
  return said;
}
