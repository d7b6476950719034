import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { connectAsync } from 'mqtt';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { withoutStandby, type WithoutStandby } from '../support/synchronous.ts';
import { runOn } from '../support/template.ts';
import { configuration, send, thresholdPurpose, type Registration } from './app.ts';
import { runProgram } from './process.ts';
import { testService, type TestService } from './service.ts';

/** Prepares something that is then sent twice: once without an answer, and once more. */
type Sending = (url: string) => Promise<() => Promise<unknown>>;

const password = 'correct horse battery';

/** The body of a successful answer, for the next step. */
async function made<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

async function openAccount(url: string) {
  const credentials = { email: `${randomUUID()}@example.org`, password };
  const answer = await send(`${url}/v2/accounts`, 'POST', credentials);
  const { accountAuthToken: token } = await made<{ accountAuthToken: string }>(answer);
  const call = (method: string, path: string, body?: unknown, headers = {}) =>
    fetch(url + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...headers,
      },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    });
  // A session's first use is recorded in a commit of its own.
  await made(await call('GET', '/v2/devices'));
  const register = async (more = {}) =>
    made<Registration>(await call('POST', '/v2/devices', { ...configuration, ...more }));
  /** Logs in once more, and lists the sessions other than the first one. */
  const logIn = async () => {
    await send(`${url}/v2/accounts/login`, 'POST', credentials);
    const answer = await call('GET', '/v2/accounts/sessions');
    const { sessions } = await made<{ sessions: { id: string; current: boolean }[] }>(answer);
    return { sessions: sessions.filter(({ current }) => !current) };
  };
  return { call, register, logIn };
}

/** Uses a new connection each time, as a device does that got no answer. */
const overMqtt =
  (protocolVersion: 4 | 5, topic: string, payload: (ts: number) => unknown): Sending =>
  async (url) => {
    const { deviceAuthUuid: uuid, ...device } = await (await openAccount(url)).register();
    const text = JSON.stringify(payload(Date.now()));
    return async () => {
      const client = await connectAsync(`mqtt://${device.host}:${device.port}`, {
        username: uuid,
        password: device.deviceAuthToken,
        protocolVersion,
        reconnectPeriod: 0,
      });
      await client.publishAsync(`devices/${uuid}/${topic}`, text, { qos: 1 });
      await client.endAsync();
    };
  };

const measurement = (ts: number) => ({ sId: '0x01', val: 21, ts });

/** Throws unless it was answered, and with neither 503 nor an error in the request. */
async function answered(response: Response): Promise<number> {
  await response.arrayBuffer();
  if (response.status >= 500 || response.status === 400)
    throw new Error(`${response.url}: ${response.status}`);
  return response.status;
}

const sendings: Record<string, Sending> = {
  'a measurement over MQTT 3.1.1': overMqtt(4, 'up/measurements', measurement),
  'a measurement over MQTT 5': overMqtt(5, 'up/measurements', measurement),
  'a state that is reported': overMqtt(4, 'up/state', (ts) => ({ puId: 1, stId: 2, ts })),
  'a message that is rejected': overMqtt(4, 'up/measurements', () => ({ sId: '0x99', val: 1 })),
  async 'an event that is reported'(url) {
    const { call, register } = await openAccount(url);
    const device = await register({ protocol: 'http' });
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
    const purposes = [thresholdPurpose(1, 30)];
    const installed = await call('POST', '/v2/devices/profile', {
      deviceAuthUuids: [uuid],
      purposes,
    });
    const { pId } = await made<{ pId: string }>(installed);
    const up = `${url}/devices/${uuid}/up`;
    const running = { pId, state: 'current', engine: 'device' };
    await answered(await send(`${up}/profile`, 'POST', running, token));
    const ts = Date.now();
    const engine = { pId, puId: 1, stId: 1, evId: 5, ts };
    const report = { cause: { engine, senses: [{ sId: '0x01', val: 33, ts }] } };
    return async () => answered(await send(`${up}/events`, 'POST', report, token));
  },
  async 'a measurement over HTTP'(url) {
    const device = await (await openAccount(url)).register({ protocol: 'http' });
    const path = `${url}/devices/${device.deviceAuthUuid}/up/measurements`;
    const body = measurement(Date.now());
    return async () => answered(await send(path, 'POST', body, device.deviceAuthToken));
  },
  async 'an import'(url) {
    const { call, register } = await openAccount(url);
    const { deviceAuthUuid } = await register();
    const line = JSON.stringify({ deviceAuthUuid, ...measurement(Date.now() - 60_000) });
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return async () =>
      answered(await call('POST', '/v2/measurements/import', `${line}\n`, headers));
  },
  async 'a request with an Idempotency-Key'(url) {
    const { call } = await openAccount(url);
    const headers = { 'Idempotency-Key': randomUUID() };
    return async () => answered(await call('POST', '/v2/devices', configuration, headers));
  },
  async 'the registration of an account'(url) {
    const credentials = { email: `${randomUUID()}@example.org`, password };
    return async () => answered(await send(`${url}/v2/accounts`, 'POST', credentials));
  },
  async 'the removal of a device'(url) {
    const { call, register } = await openAccount(url);
    const { deviceAuthUuid } = await register();
    return async () => answered(await call('DELETE', `/v2/devices/${deviceAuthUuid}`));
  },
  async 'the removal of an account'(url) {
    const { call } = await openAccount(url);
    return async () => answered(await call('DELETE', '/v2/accounts'));
  },
  async 'the removal of a push token'(url) {
    const { call } = await openAccount(url);
    const added = await call('POST', '/v2/accounts/push-tokens', { token: 'a telephone' });
    const { tokenId } = await made<{ tokenId: string }>(added);
    return async () => answered(await call('DELETE', `/v2/accounts/push-tokens/${tokenId}`));
  },
  async 'the removal of a key'(url) {
    const { call } = await openAccount(url);
    const answer = await call('POST', '/v2/accounts/keys', { name: 'k', scopes: ['devices:read'] });
    const { keyId } = await made<{ keyId: string }>(answer);
    return async () => answered(await call('DELETE', `/v2/accounts/keys/${keyId}`));
  },
  async 'the removal of a purpose'(url) {
    const { call } = await openAccount(url);
    const answer = await call('POST', '/v2/purposes', thresholdPurpose(1, 30));
    const { purposeUuid } = await made<{ purposeUuid: string }>(answer);
    return async () => answered(await call('DELETE', `/v2/purposes/${purposeUuid}`));
  },
  async 'labels that a device has already'(url) {
    const { call, register } = await openAccount(url);
    const { deviceAuthUuid } = await register();
    const path = `/v2/devices/${deviceAuthUuid}/labels`;
    return async () => answered(await call('PUT', path, { labels: ['cellar'] }));
  },
  async 'a device that is muted already'(url) {
    const { call, register } = await openAccount(url);
    const { deviceAuthUuid } = await register();
    const path = `/v2/devices/${deviceAuthUuid}/mute`;
    const body = { untilTs: Date.now() + 3_600_000 };
    return async () => answered(await call('PUT', path, body));
  },
  async 'the end of a session'(url) {
    const { call, logIn } = await openAccount(url);
    const { sessions } = await logIn();
    return async () => answered(await call('DELETE', `/v2/accounts/sessions/${sessions[0]?.id}`));
  },
};

type Commits = {
  first: string;
  again: string;
  /** A table that it writes in its last transaction. What it commits before that is on the standby. */
  last?: string;
};

const measured: Commits = {
  first: 'device_state measurement series',
  again: '(device_state )?measurement( series)?',
};
const muted = 'account_audit device_mute( message_bundle)? notification';

/**
 * Distinguishes each sending's commit from the service's own commits, which wait for the standby too. If the second
 * sending has `nothing`, or is a repeated measurement or state, only `Database.transaction` makes it wait. The others
 * write or lock a row, which the server also writes to its log.
 */
const commits: Record<string, Commits> = {
  'a measurement over MQTT 3.1.1': measured,
  'a measurement over MQTT 5': measured,
  'a measurement over HTTP': measured,
  'a state that is reported': {
    first: 'device_state event event_feed event_sense',
    again: 'device_state',
  },
  'a message that is rejected': {
    first: 'device_state rejection rejection_count',
    again: 'device_state rejection rejection_count',
  },
  'an event that is reported': {
    first: 'event event_feed event_meaning event_sense',
    again: '(device_input )?device_state event event_feed( event_meaning)? event_sense',
  },
  // It looks for alarms that what was imported changes.
  'an import': {
    first: 'alarm device_state measurement series',
    again: '(alarm )?(device_state )?measurement( series)?',
  },
  'a request with an Idempotency-Key': {
    first: 'account_audit account_usage device device_state idempotency_key',
    again: 'nothing',
    last: 'account_usage',
  },
  'the registration of an account': {
    first: 'account account_audit account_event',
    again: 'nothing',
  },
  'the removal of a device': {
    first: 'account_audit account_usage device .* removed_uuid sense_clock',
    again: 'account_usage device device_state refused_login removed_device removed_uuid',
  },
  'the removal of an account': {
    first: 'account account_audit .* session stream_ticket',
    again: 'nothing',
    last: 'push_token',
  },
  'the removal of a push token': { first: 'account account_audit push_token', again: 'nothing' },
  'the removal of a key': { first: 'account_audit api_key', again: 'nothing' },
  'the removal of a purpose': {
    first: 'account_audit account_usage former_version purpose',
    again: 'nothing',
  },
  'labels that a device has already': {
    first: 'account_usage device',
    again: 'account_usage device',
  },
  'a device that is muted already': { first: muted, again: muted },
  'the end of a session': { first: 'session', again: 'nothing' },
};

/** Sendings that do not depend on the kind of storage run on one kind only. */
const isOfHistory = ([name]: [string, unknown]) => /measurement|import|event/.test(name);
const all = Object.entries(sendings);
const kinds = [
  { kind: 'PostgreSQL', timescaledb: false, tried: all },
  { kind: 'TimescaleDB', timescaledb: true, tried: all.filter(isOfHistory) },
].filter(({ timescaledb }) => !timescaledb || findTimescaleBinDir() !== null);

describe.each(kinds)('while $kind has no synchronous standby', ({ timescaledb, tried }) => {
  let cluster: Cluster;
  let standby: WithoutStandby;
  let service: TestService;

  beforeAll(async () => {
    cluster = await startThrowAwayCluster({ timescaledb, durable: true });
    const url = cluster.url();
    await migrate(url, { log: { info: () => undefined, warn: () => undefined } });
    service = await testService({ DATABASE_URL: url });
    standby = withoutStandby(cluster);
  });
  afterEach(() => standby.letGo());
  afterAll(async () => {
    await service.close();
    await cluster.remove();
  });

  test.each(tried)(
    '%s that was stored without one is not answered when it is sent again',
    async (name, prepare) => {
      const act = await prepare(service.url);
      const { first: told, again: toldAgain, last } = commits[name] as Commits;
      if (last === undefined) await standby.requireStandby();
      const waiting = await standby.watchCommit(told);
      let first: Promise<unknown> = Promise.resolve();
      const begin = () => {
        first = act().catch(() => undefined);
      };
      if (last === undefined) begin();
      else await standby.requireStandbyAt(last, begin);
      await waiting();
      // What ended with the server is over. What the service retries continues, and what is sent again waits for it.
      const waitingAgain = await standby.watchCommit(toldAgain);
      await standby.crash();
      let isAnswered = false;
      const again = () => act().then(() => (isAnswered = true));
      const ready = async () => (await fetch(`${service.url}/v2/devices`)).status;
      await expect.poll(ready).toBe(401);
      const repeated = again();
      repeated.catch(() => undefined);
      await Promise.race([waitingAgain(), repeated]);
      for (let asked = 0; asked < 20; asked += 1) await fetch(`${service.url}/v2/status`);
      expect(isAnswered).toBe(false);
      await standby.letGo();
      await Promise.all([repeated, first]);
    },
  );

  // These write nothing: they report what existed, or was gone, before.
  const said = Object.keys(sendings).filter((name) => /removal|registration|end of/.test(name));
  test.skipIf(timescaledb).each(said)(
    '%s is not answered if it only reports that it was done before',
    async (name) => {
      const act = await (sendings[name] as Sending)(service.url);
      await act();
      await standby.requireStandby();
      const waiting = await standby.watchCommit((commits[name] as Commits).again);
      let isAnswered = false;
      const again = act().then(() => (isAnswered = true));
      again.catch(() => undefined);
      await Promise.race([waiting(), again]);
      for (let asked = 0; asked < 20; asked += 1) await fetch(`${service.url}/v2/devices`);
      expect(isAnswered).toBe(false);
      await standby.letGo();
      await again;
    },
  );

  // What an operator sees of an account does not depend on the kind of storage.
  test.skipIf(timescaledb)(
    'npm run account waits too if it reports that an account exists',
    async () => {
      const databaseUrl = cluster.url();
      const email = `${randomUUID()}@example.org`;
      await answered(await send(`${service.url}/v2/accounts`, 'POST', { email, password }));
      await standby.requireStandby();
      const env = { DATABASE_URL: databaseUrl, SECRET: 'a secret that only this test knows, long' };
      const args = ['src/cli/account.ts', 'create', email];
      const command = runProgram(process.execPath, args, { env, input: `${password}\n` });
      const ended = command.ended();
      let status: number | null | undefined;
      void ended.then((code) => (status = code));
      const countWaiting = async () => {
        const { rows } = await runOn(databaseUrl, (client) =>
          client.query(
            `select from pg_stat_activity
              where wait_event = 'SyncRep' and application_name = 'operator-command'`,
          ),
        );
        return rows.length;
      };
      await expect
        .poll(async () => status !== undefined || (await countWaiting()) > 0, { timeout: 60_000 })
        .toBe(true);
      expect(status).toBeUndefined();
      await standby.letGo();
      expect(await ended).toBe(1);
      expect(command.stderr()).toContain('An account with this e-mail address already exists');
    },
  );
});
