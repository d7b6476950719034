import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { smugglingForms } from '../connector/http/smuggling-forms.ts';
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

    const path = (topic = 'measurements') => `/devices/${device.deviceAuthUuid}/up/${topic}`;
    const post = (payload: unknown, topic?: string) =>
      fetch(haproxy.url + path(topic), {
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

    /** With one behind it that would be smuggled. */
    const request = (headers: string[], body: string, hidden: string) => {
      const head = (more: string[]) =>
        [
          `POST ${path()} HTTP/1.1`,
          'Host: x',
          `Authorization: Bearer ${device.deviceAuthToken}`,
          ...more,
          '',
          '',
        ].join('\r\n');
      return `${head(headers)}${body}${head([`Content-Length: ${hidden.length}`])}${hidden}`;
    };

    test('the proxy and the uplink agree where each request ends, whatever it looks like', async () => {
      const [firstVal, hiddenVal, ts] = [8_000, 9_000, Date.now() - 300_000];
      const measured = (val: number) => JSON.stringify({ sId: '0x02', val, ts: ts + val });
      const forms = smugglingForms(measured(firstVal)).map(([name], n) => {
        const [, headers = [], body = ''] = smugglingForms(measured(firstVal + n))[n] ?? [];
        return { name, text: request(headers, body, measured(hiddenVal + n)) };
      });
      const over = new AbortController();
      // Others use the connections between the proxy and the uplink meanwhile: each is given its own answer.
      const others = Array.from({ length: 4 }, async (_, worker) => {
        let asked = 0;
        for (; !over.signal.aborted; asked += 1) {
          const echo = `${worker} ${asked}`;
          const response = await post({ echo }, 'time');
          expect([response.status, await response.json()]).toMatchObject([200, { echo }]);
        }
        return asked;
      });
      const said = await Promise.all(forms.map(({ text }) => talk(haproxy.url, text)));
      over.abort();
      for (const asked of await Promise.all(others)) expect(asked).toBeGreaterThan(0);
      const values = new Set(await listValues());
      const wrong = forms.flatMap(({ name }, n) => {
        const stored = [firstVal + n, hiddenVal + n].filter((val) => values.has(val)).length;
        const receipts = [...(said[n] ?? '').matchAll(/"stored":1/g)].length;
        return stored === receipts ? [] : [{ name, stored, said: said[n] }];
      });
      expect(wrong).toEqual([]);
      // A request whose end only one of them sees is refused; with it the one behind.
      const refused = said.filter((text) => /^HTTP\/1\.1 4\d\d /.test(text));
      expect(refused.length).toBeGreaterThan(10);
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
