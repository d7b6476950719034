import { once } from 'node:events';
import { connect } from 'node:net';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { faultsOf, judge, noFaults } from '../faults/verdict.ts';
import { startHandOvers } from '../faults/watch/hand-overs.ts';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { smugglingForms } from '../connector/http/smuggling-forms.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasRedis } from '../support/redis.ts';
import { haproxyProgram, startShippedHaproxy, type ShippedHaproxy } from './shipped-haproxy.ts';
import { startInstallation, type Installation } from './world.ts';

const at = (id: number) => ({ id, name: `connector-${id}`, host: null, port: null });
const mqtt = (id: number): ConnectorSettings => ({ kind: 'mqtt', protocol: 'mqtt', ...at(id) });
const http = (id: number): ConnectorSettings => ({ kind: 'http', protocol: 'http', ...at(id) });
const devices = 60;

describe.skipIf(haproxyProgram === null || !hasRedis)(
  'devices of every protocol behind the shipped HAProxy',
  () => {
    let installation: Installation;
    let haproxy: ShippedHaproxy;
    let app: App;
    let device: Registration;
    const closing: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      installation = await startInstallation({
        apis: 1,
        connectors: [mqtt(1), mqtt(2), http(4), http(5)],
        settings: {
          http: { trustedProxies: ['127.0.0.1'] },
          mqtt: { trustedProxies: ['127.0.0.1'] },
        },
      });
      const { apis, connectors } = installation;
      haproxy = await startShippedHaproxy(makeTemporaryDir(), {
        apis,
        connectors: connectors.slice(0, 2),
        uplinks: connectors.slice(2),
      });
      app = await openApp(haproxy.url);
      device = await app.call<Registration>('POST', '/v2/devices', {
        ...configuration,
        protocol: 'http',
      });
    });
    afterAll(async () => {
      for (const close of closing) await close();
      await installation?.close();
      await haproxy?.close();
    });

    test('nothing is lost or doubled while one connector after the other is killed', async () => {
      const { databaseUrl } = installation;
      const [port, httpPort] = [haproxy.mqttPort, Number(new URL(haproxy.url).port)];
      const witnessed = await installation.startLoad({ port, httpPort, devices, rate: 300 });
      const profiles = await startHandOvers({
        url: haproxy.url,
        httpPort,
        databaseUrl: () => databaseUrl,
      });
      closing.push(profiles.close);
      const { load } = witnessed;
      const runFor = async (acknowledgements: number) => {
        const goal = load.counts().acknowledged + acknowledgements;
        while (load.counts().acknowledged < goal) await load.nextAck();
      };
      load.start();
      for (const one of installation.connectors) {
        await runFor(200);
        await one.kill();
        await load.online(devices);
        await runFor(200);
        await one.start();
      }
      await runFor(200);
      expect(await load.stop(60_000)).toBe(true);
      const verdict = await judge(witnessed);
      expect(faultsOf(verdict)).toEqual(noFaults);
      expect(verdict.overHttp).toBeGreaterThan(0);
      expect(verdict.acknowledged).toBeGreaterThan(2 * verdict.overHttp);
      const { handOvers, ...wrong } = await profiles.judge();
      expect(wrong).toEqual({ sentEarly: 0, unsent: 0, uncurrent: 0, stuck: 0 });
      expect(handOvers).toBeGreaterThan(0);
      const servers = Object.entries(await haproxy.servers());
      for (const [name, { sessions }] of servers)
        if (!name.startsWith('ws-')) expect(sessions, name).toBeGreaterThan(0);
    });

    test('MQTT over a WebSocket goes to any MQTT connector', async () => {
      const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
      const open = async (place: number) => {
        const client = await connectAsync(`${haproxy.url.replace('http', 'ws')}/mqtt`, {
          username: uuid,
          password: token,
          clientId: `browser-${place}`,
          reconnectPeriod: 0,
        });
        closing.push(() => client.endAsync(true));
        return client;
      };
      const clients = [await open(1), await open(2)];
      for (const [place, client] of clients.entries()) {
        const payload = JSON.stringify({ sId: '0x02', val: 7_000 + place, ts: Date.now() });
        await client.publishAsync(`devices/${uuid}/up/measurements`, payload, { qos: 1 });
      }
      expect(await listValues()).toEqual(expect.arrayContaining([7_000, 7_001]));
      const known = await haproxy.servers();
      for (const name of ['ws-1', 'ws-2'])
        expect(known[name]).toMatchObject({ status: 'UP', sessions: 1 });
      // Other paths belong to the API, and a connector serves none of them.
      expect((await fetch(`${haproxy.url}/v2/status`)).status).toBe(200);
      const [connector] = installation.connectors as [ServiceProcess];
      const own = `http://127.0.0.1:${connector.webSocketPort}`;
      expect((await fetch(`${own}/v2/status`)).status).toBe(404);
      expect((await fetch(`${own}/mqtt`)).status).toBe(404);
      expect(connector.log()).toMatch(/"webSocket":\{[^}]*"port":\d+\}/);
      // A killed connector disconnects its devices, and they find another one.
      const cut = Promise.race(clients.map((client) => nextClose(client)));
      await connector.kill();
      await cut;
      const again = await open(3);
      const payload = JSON.stringify({ sId: '0x02', val: 7_002, ts: Date.now() });
      await again.publishAsync(`devices/${uuid}/up/measurements`, payload, { qos: 1 });
      expect(await listValues()).toContain(7_002);
      await connector.start();
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

    /** A request with another one after it that would be smuggled. */
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
      // Other requests share the connections between proxy and uplink meanwhile, and each gets its own answer.
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
      // A request whose end only one of them sees is refused, together with the one after it.
      const refused = said.filter((text) => /^HTTP\/1\.1 4\d\d /.test(text));
      expect(refused.length).toBeGreaterThan(10);
    });
  },
);

const nextClose = (client: MqttClient) =>
  new Promise<void>((resolve) => client.once('close', () => resolve()));

/** Sends text. Returns what came back until the connection ended or was silent for a second. */
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
