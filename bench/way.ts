import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { pino } from 'pino';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { loadConfig } from '../src/config/config.ts';
import { startMailServer } from '../test/support/smtp.ts';
import { call, registerAccount } from './api.ts';
import { createReleases } from './releases.ts';
import { type Entered, heard, listen } from './way/hook.ts';

const usage = `Usage: npm run bench:way -- [options]

How much code one message passes: functions entered, files, and changes of file (a function entered after one in
another file), from the socket to the end of its path. Reports the least of seven runs, so that no timers are
included. Of a mail it also reports the part behind the commit: what the outbox calls until the mail server has it,
without what runs beside that.

  --list   The files of each path, in the order in which they are entered.
  --trace  Each function.`;

const options = readOptionsOrExit(
  usage,
  { list: { type: 'boolean' }, trace: { type: 'boolean' } },
  (values) => values,
);

const configuration = {
  device: { name: 'Cold room', swName: 'probe', swVersion: '1', hwVersion: 'A', serial: '1' },
  module: [{ moduleId: 'm', moduleName: 'Room', senses: [{ sId: '0x10', min: -40, max: 85 }] }],
};
const event = (evId: number, thresholds: object, gotoStId: number, told = {}) => ({
  evId,
  name: `event ${evId}`,
  eventLog: true,
  causes: [{ sId: '0x10', orderId: 1, thresholds }],
  actions: { cloud: { sendEvent: true, ...told }, engine: { gotoStId } },
});
const profile = {
  puId: 1,
  name: 'Cold room',
  initStId: 1,
  states: [
    { stId: 1, name: 'cold', events: [event(1, { isGt: 8 }, 2, { sendPush: true })] },
    { stId: 2, name: 'warm', events: [event(1, { isLt: 6 }, 1)] },
  ],
};

/**
 * Two messages go first, so that one-time reads are done. After ten mails in ten minutes a person gets one mail for
 * many.
 */
const [ahead, counted] = [2, 7];

type Registration = { deviceAuthUuid: string; deviceAuthToken: string; host: string; port: number };
type Way = {
  entered: Entered[];
  calls: number;
  files: string[];
  changes: number;
  delivery: Way | null;
};

// The hook counts only what is loaded after it, so nothing above may import the database.
const { startThrowAwayCluster } = await import('../test/support/cluster.ts');
const { sweepAbandoned } = await import('../test/support/sweep.ts');

const releases = createReleases();
const mail = await startMailServer();
releases.defer(() => mail.close());
const dir = mkdtempSync(join(tmpdir(), 'sensorium-way-'));
releases.defer(async () => rmSync(dir, { recursive: true, force: true }));
// One that the next run removes if this one is killed.
await sweepAbandoned();
const cluster = await startThrowAwayCluster({ timescaledb: false });
releases.defer(() => cluster.remove());
const { startService } = await import('../src/service.ts');
const config = await loadConfig({
  DATA_DIR: dir,
  DATABASE_URL: cluster.url(),
  HTTP_HOST: '127.0.0.1',
  HTTP_PORT: '0',
  MQTT_HOST: '127.0.0.1',
  MQTT_PORT: '0',
  PUBLIC_HOST: '127.0.0.1',
  PUBLIC_URL: 'http://127.0.0.1:8080',
  SECRET: randomBytes(32).toString('hex'),
  SMTP_URL: mail.url,
});
const service = await startService(
  { ...config, console: { ...config.console, enabled: false } },
  pino({ level: 'silent' }),
);
releases.defer(() => service.close());
try {
  await measure(`http://127.0.0.1:${service.addresses.http?.port ?? 0}`);
} finally {
  await releases.downTo(0);
}

async function measure(url: string): Promise<void> {
  const { token, email } = await registerAccount(url);
  const rest = <T>(method: string, path: string, body?: unknown) =>
    call<T>(url, method, path, { token, body });
  await rest('PUT', '/v2/accounts/contacts', { emails: [{ address: email }] });
  const { text } = await mail.mailTo(email);
  await confirm(url, text);
  const registration = await rest<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid: uuid, deviceAuthToken } = registration;
  const topic = (name: string) => `devices/${uuid}/${name}`;
  const connect = async (protocolVersion: 4 | 5): Promise<MqttClient> => {
    const client = await connectAsync(`mqtt://127.0.0.1:${registration.port}`, {
      protocolVersion,
      username: uuid,
      password: deviceAuthToken,
      reconnectPeriod: 0,
    });
    await client.subscribeAsync(topic('down/#'), { qos: 1 });
    return client;
  };
  let client = await connect(4);
  const install = async () => {
    const answered = answerProfile(client, topic);
    await rest('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [profile] });
    await answered;
  };
  const say = (val: number) =>
    client.publishAsync(topic('up/measurements'), JSON.stringify({ sId: '0x10', val }), { qos: 1 });
  await install();
  const count = async (
    name: string,
    act: () => Promise<unknown>,
    between?: () => Promise<unknown>,
  ) => print(name, await least(act, between));
  await count('a measurement, MQTT 3.1.1', () => say(7));
  await client.endAsync();
  client = await connect(5);
  await count('a measurement, MQTT 5', () => say(7));
  const post = () =>
    fetch(`${url}/devices/${uuid}/up/measurements`, {
      method: 'POST',
      headers: { authorization: `Bearer ${deviceAuthToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ sId: '0x10', val: 7 }),
    }).then((response) => response.arrayBuffer());
  await count('a measurement, HTTP', post);
  await count(
    'a firing to an accepted mail',
    async () => {
      const before = mail.mails.length;
      await say(9);
      while (mail.mails.length === before) await new Promise((resolve) => setImmediate(resolve));
    },
    () => say(5),
  );
  await count('POST /v2/devices/profile to current', install);
  await client.endAsync();
}

/** Resolves when the next profile is answered and the answer is acknowledged. */
function answerProfile(client: MqttClient, topic: (name: string) => string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onMessage = (name: string, payload: Buffer) => {
      if (name !== topic('down/profile')) return;
      client.off('message', onMessage);
      const { pId } = JSON.parse(payload.toString()) as { pId: string };
      const answer = JSON.stringify({ pId, state: 'current' });
      client.publishAsync(topic('up/profile'), answer, { qos: 1 }).then(() => resolve(), reject);
    };
    client.on('message', onMessage);
  });
}

async function confirm(url: string, text: string): Promise<void> {
  const [link = ''] = /http:\/\/\S+token=[\w-]+/.exec(text) ?? [];
  const { pathname, search } = new URL(link);
  await fetch(`${url}${pathname}${search}`, { method: 'POST' });
}

async function least(
  act: () => Promise<unknown>,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Way> {
  const ways: Way[] = [];
  for (let n = 0; n < ahead + counted; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    listen();
    await act();
    const way = wayOf(heard());
    if (n >= ahead) ways.push(way);
    await between();
  }
  return ways.reduce((best, way) => (way.calls < best.calls ? way : best));
}

function wayOf(entered: Entered[]): Way {
  const files = new Set<string>();
  let changes = 0;
  let last = '';
  for (const { file } of entered) {
    if (last !== '' && file !== last) changes += 1;
    files.add((last = file));
  }
  const delivered = entered.filter(({ isDelivery }) => isDelivery);
  const delivery =
    delivered.length > 0 && delivered.length < entered.length ? wayOf(delivered) : null;
  return { entered, calls: entered.length, files: [...files], changes, delivery };
}

function print(name: string, { entered, calls, files, changes, delivery }: Way): void {
  console.log(`${name}: ${files.length} files, ${changes} changes of file, ${calls} calls`);
  if (options.list) for (const file of files) console.log(`  ${file}`);
  if (options.trace) for (const { file, name } of entered) console.log(`  ${file} ${name}`);
  if (delivery) print(`${name}, behind the commit`, delivery);
}
