import { once } from 'node:events';
import { createServer } from 'node:http';
import { readFile, stat } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { runOn } from '../support/template.ts';
import { shareOf } from '../support/share.ts';
import { connectDevice } from '../journeys/device.ts';
import { startPhones, type Phones } from '../journeys/phones.ts';
import { runProgram } from '../journeys/process.ts';
import { readEvents } from '../events/sse.ts';
import { newHome, startAt, type Home, type HomeKind, type Started } from './home.ts';
import { call, install, readAnswers, type Installation } from './installation.ts';

const secret = 'a secret that only this test knows, long enough';

async function command(script: 'backup' | 'restore', args: string[], env: Record<string, string>) {
  const program = runProgram(process.execPath, [`src/cli/${script}.ts`, ...args], { env });
  const status = await program.ended();
  return { status, said: program.stdout() + program.stderr() };
}

/** Counts that are written a moment after what they count. */
const lagging = ['eventsPerDay', 'storedBytes'];

/** Removes the results of waiting notifications, which are sent as soon as the target runs, and delayed counts. */
function withoutOutcomes(answers: Record<string, unknown>): unknown {
  const left = (_key: string, value: unknown): unknown => {
    const { kind, recipient, quota } = (value ?? {}) as Record<string, unknown>;
    if (lagging.includes(String(quota))) return { quota };
    return kind === 'sms' ? { recipient } : value;
  };
  return JSON.parse(JSON.stringify(answers), left);
}

const ways: [HomeKind, HomeKind][] = [
  ['embedded', 'timescaledb'],
  ['timescaledb', 'embedded'],
  ['postgresql', 'postgresql'],
];
const here = ways.filter((way) =>
  way.every((kind) => kind === 'embedded' || databaseKinds.includes(kind)),
);

describe.each(shareOf(here))('a portable copy from %s to %s', (fromKind, toKind) => {
  const dir = makeTemporaryDir();
  const copyDir = join(dir, 'copy');
  let phones: Phones;
  let from: Home;
  let to: Home;
  let source: Started;
  let target: Started | undefined;
  let at: Installation;
  let before: Record<string, unknown>;

  beforeAll(async () => {
    phones = await startPhones();
    // Whoever restores the copy of an embedded database elsewhere finds its secret in the copy.
    from = await newHome(fromKind, fromKind === 'embedded' ? null : secret);
    // Nobody receives its SMS, so they wait.
    const dead = { driver: 'webhook' as const, url: await urlOfNobody(), timeoutMs: 1_000 };
    source = await startAt(from, (config) => {
      const { sms, ...rest } = phones.notifications;
      const secretFile = 'secretFile' in sms ? sms.secretFile : '';
      return { ...config, notifications: { ...rest, sms: { ...sms, ...dead, secretFile } } };
    });
    at = await install(source.url);
    await vi.waitFor(() => expect(phones.pushes).toHaveLength(1), { timeout: 60_000 });
    const { DATABASE_URL } = from.variables;
    if (DATABASE_URL && fromKind === 'timescaledb') await compress(DATABASE_URL);
    before = await readAnswers(source.url, at);
  });
  afterAll(async () => {
    await source?.close();
    await target?.close();
    await phones?.close();
    await from?.remove();
    await to?.remove();
    rmSync(dir, { recursive: true });
  });

  /** Does what the policies and the aggregate's job would have done. */
  async function compress(url: string): Promise<void> {
    await runOn(url, async (client) => {
      const { rows } = await client.query<{ n: string }>(
        `select count(compress_chunk(c)) as n from show_chunks('measurement', older_than => interval '3 days') c`,
      );
      expect(Number(rows[0]?.n)).toBeGreaterThan(10);
      await client.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
    });
  }

  test('is made while the service runs, and restored', async () => {
    const copied = await command('backup', ['--portable', copyDir], from.variables);
    expect(copied).toMatchObject({ status: 0 });
    expect((await stat(copyDir)).mode & 0o777).toBe(0o700);
    expect((await stat(join(copyDir, 'measurement.copy.zst'))).mode & 0o777).toBe(0o600);
    const ofCopy = await readFile(join(copyDir, 'secret'), 'utf8').catch(() => null);
    expect(ofCopy === null).toBe(fromKind !== 'embedded');

    to = await newHome(toKind, ofCopy?.trim() ?? secret);
    if (fromKind === 'embedded') {
      const wrong = { ...to.variables, SECRET: `${secret}, and another` };
      const refused = await command('restore', [copyDir], wrong);
      expect(refused).toMatchObject({ status: 1 });
      expect(refused.said).toContain('SECRET: differs');
    }
    const restored = await command('restore', [copyDir], to.variables);
    expect(restored).toMatchObject({ status: 0 });
    expect(restored.said).toMatch(/Restored the copy of .* tables, [\d,]+ rows/);
    const again = await command('restore', [copyDir], to.variables);
    expect(again).toMatchObject({ status: 1 });
    expect(again.said).toMatch(/is not empty|holds a database already/);
  });

  test('gives every answer that the source gave', async () => {
    const { notifications } = phones;
    target = await startAt(to, (config) => ({ ...config, notifications }));
    const after = await readAnswers(target.url, at);
    expect(Object.keys(after).length).toBeGreaterThan(30);
    // The device that fired has something in every list.
    const own = Object.entries(before).filter(([path]) => path.includes(at.fired.deviceAuthUuid));
    for (const [path, answer] of own)
      for (const list of Object.values(answer as object))
        if (Array.isArray(list)) expect(list.length, path).not.toBe(0);
    expect(withoutOutcomes(after)).toEqual(withoutOutcomes(before));
  });

  test('delivers the notification that was waiting', async () => {
    await expect.poll(() => phones.texts.length, { timeout: 60_000 }).toBe(1);
    expect(phones.texts[0]).toMatchObject({
      text: expect.stringMatching(/Open the window\nOver since /),
    });
    const path = `/v2/devices/${at.fired.deviceAuthUuid}/notifications`;
    const states = async () => {
      const url = target?.url ?? '';
      const answer = await call<{ notifications: { state: string }[] }>(url, 'GET', path, at);
      return answer.notifications.map(({ state }) => state);
    };
    await expect.poll(states, { timeout: 60_000 }).toEqual(['sent', 'sent']);
    // The push was sent before, and is not sent again.
    expect(phones.pushes).toHaveLength(1);
  });

  test('resumes a stream where it was, and skips nothing', async () => {
    const url = `${target?.url}/v2/events/stream`;
    const stream = await readEvents(url, at.token, at.lastEventId);
    const device = await connectDevice({ ...at.fired, port: target?.mqttPort ?? 0 });
    await device.publish('up/state', { puId: 1, stId: 2, ts: at.unseenTs + 1 });
    await device.end();
    const seen = () => stream.messages.flatMap(({ data }) => (data ? [data['timestamp']] : []));
    await expect.poll(seen, { timeout: 60_000 }).toContain(at.unseenTs + 1);
    expect(seen()).toContain(at.unseenTs);
    stream.close();
    // From here on nothing is repeated.
    const resumed = await readEvents(url, at.token, stream.lastId());
    const again = await connectDevice({ ...at.fired, port: target?.mqttPort ?? 0 });
    await again.publish('up/state', { puId: 1, stId: 1, ts: at.unseenTs + 2 });
    await again.end();
    expect((await resumed.until(1)).map((event) => event['timestamp'])).toEqual([at.unseenTs + 2]);
    resumed.close();
  });

  test('fires with the next measurement if the evidence was half complete', async () => {
    const path = `/v2/events/${at.halfWay.deviceAuthUuid}?type=sense`;
    const events = () => call<{ events: object[] }>(target?.url ?? '', 'GET', path, at);
    expect((await events()).events).toEqual([]);
    const device = await connectDevice({ ...at.halfWay, port: target?.mqttPort ?? 0 });
    await device.publish('up/measurements', { sId: '0x01', val: 33, ts: at.unseenTs });
    await device.end();
    expect((await events()).events).toMatchObject([
      { why: [{ compared: 33, matched: 2, of: 2, needed: 2 }] },
    ]);
    await expect.poll(() => phones.texts.length, { timeout: 60_000 }).toBe(2);
  });

  test('gives no number twice', async () => {
    const fresh = await call(target?.url ?? '', 'POST', '/v2/devices', {
      token: at.token,
      body: { device: { name: 'new' }, module: [] },
    });
    expect(fresh).toHaveProperty('deviceAuthUuid');
    const path = `/v2/events/${at.fired.deviceAuthUuid}`;
    const { events } = await call<{ events: { eventId: string }[] }>(
      target?.url ?? '',
      'GET',
      path,
      at,
    );
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(events.length);
  });
});

async function urlOfNobody(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/sms`;
}
