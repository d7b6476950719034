import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { findProgram } from '../support/program.ts';
import { debianPython, hasPandas } from '../support/python.ts';
import { startGate, type Gate } from './gate.ts';

const apps = 'examples/apps';
const dayMs = 86_400_000;

let service: TestService;
let app: App;
let device: Registration;
let directory: string;
let env: Record<string, string>;
beforeAll(async () => {
  service = await testService();
  directory = await mkdtemp(join(tmpdir(), 'sensorium-examples-'));
});
afterAll(async () => {
  await service?.close();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  app = await openApp(service.url);
  device = await app.call<Registration>('POST', '/v2/devices', configuration);
  await app.call('PUT', `/v2/devices/${device.deviceAuthUuid}/labels`, { labels: ['cellar'] });
  const { key } = await app.call<{ key: string }>('POST', '/v2/accounts/keys', {
    name: 'Examples',
    scopes: ['data:read'],
  });
  env = { URL: service.url, KEY: key };
});

async function measure(...measurements: { sId: string; val: number; ts: number }[]) {
  const client = await connectDevice(device);
  await client.publish('up/measurements', measurements);
  await client.end();
}

async function stop(program: Running): Promise<void> {
  program.child.kill('SIGTERM');
  await program.ended();
}

test('the phone lists devices, follows what happens, and acknowledges an alarm', async () => {
  const now = Date.now();
  await measure({ sId: '0x01', val: 5, ts: now - 2_000 });
  const warm = { evId: 1, name: 'Too warm', actions: { alarm: true } };
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [device.deviceAuthUuid],
    purposes: [
      {
        puId: 1,
        initStId: 1,
        states: [
          { stId: 1, events: [{ ...warm, causes: [{ sId: '0x01', thresholds: { isGt: 8 } }] }] },
        ],
      },
    ],
  });
  const login = { EMAIL: app.email, PASSWORD: 'correct horse battery' };
  const phone = runProgram(process.execPath, [`${apps}/phone.mjs`], {
    env: { URL: service.url, ...login, ACKNOWLEDGE: 'yes' },
  });
  try {
    await phone.printed(/Following\./);
    await phone.printed(/^Values are live\.$/m);
    expect(phone.stdout()).toMatch(/^Greenhouse: o(n|ff)line\n {2}0x01 5 at \d{4}-/m);
    await measure({ sId: '0x01', val: 31, ts: now });
    await phone.printed(/^Greenhouse: 0x01 31$/m);
    await phone.printed(/^Greenhouse: alarm opened, Too warm$/m);
    await phone.printed(/^Greenhouse: alarm acknowledged, Too warm$/m);
    expect(phone.stderr()).toBe('');
  } finally {
    await stop(phone);
  }
  const { alarms } = await app.call<{ alarms: { state: string }[] }>('GET', '/v2/alarms');
  expect(alarms).toMatchObject([{ state: 'acknowledged' }]);
});

test.skipIf(!hasPandas)('the Python program reads a frame, and saves a plot', async () => {
  const now = Date.now();
  const value = (val: number, age: number) => ({ sId: '0x01', val, ts: now - age });
  await measure(value(5, 3_000), value(6, 2_000), value(10, 1_000), value(99, 3 * dayMs));
  const picture = join(directory, 'plot.png');
  const plot = runProgram(debianPython, [`${apps}/plot.py`, 'label=cellar', '2', picture], { env });
  expect(await plot.ended(), plot.stderr()).toBe(0);
  expect(plot.stdout()).toMatch(/0x01 +3 +5(\.0)? +7\.0 +10(\.0)?\n/);
  const image = await readFile(picture);
  expect(image.subarray(0, 8)).toEqual(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'));
  expect(image.length).toBeGreaterThan(5_000);
});

test.skipIf(findProgram('curl') === null)(
  'a month is exported, and resumes where it broke off',
  async () => {
    const today = new Date();
    const ofLastMonth = (day: number, hour = 0, ms = 0) =>
      Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 1, day, hour, 0, 0, ms);
    const month = new Date(ofLastMonth(1)).toISOString().slice(0, 7);
    const lastDay = daysOf(month);
    await measure(
      { sId: '0x01', val: 1, ts: ofLastMonth(1) },
      { sId: '0x01', val: 2, ts: ofLastMonth(2) - 1 },
      { sId: '0x01', val: 3, ts: ofLastMonth(12, 12) },
      { sId: '0x01', val: 4, ts: ofLastMonth(lastDay + 1) - 1 },
      { sId: '0x01', val: 5, ts: ofLastMonth(lastDay + 1) },
    );
    const target = join(directory, 'export');
    const gate: Gate = await startGate(service.url);
    const run = async () => {
      const args = [`${apps}/export-month.sh`, month, 'label=cellar', target];
      const script = runProgram('sh', args, { env: { ...env, URL: gate.url, RETRIES: '0' } });
      return { status: await script.ended(), stderr: script.stderr() };
    };
    try {
      gate.breakAt(`start=${month}-10`);
      const broken = await run();
      expect(broken.status).toBe(1);
      expect(broken.stderr).toContain(`${month}-10 failed; the same command goes on there.`);
      expect((await readdir(target)).filter((file) => file.endsWith('.csv'))).toHaveLength(9);

      gate.breakAt(null);
      const seen = gate.count();
      expect(await run()).toEqual({ status: 0, stderr: '' });
      expect(gate.count() - seen).toBe(lastDay - 9);
      const files = (await readdir(target)).toSorted();
      expect(files).toHaveLength(lastDay);
      const texts = await Promise.all(files.map((file) => readFile(join(target, file), 'utf8')));
      const rows = texts.map((text) => text.trim().split('\r\n').slice(1));
      const valuesOf = (day: number) => rows[day - 1]?.map((row) => Number(row.split(',')[3]));
      expect([1, 2, 12, lastDay].map(valuesOf)).toEqual([[1, 2], [], [3], [4]]);
      await writeFile(join(target, files[0] ?? ''), 'kept');
      expect(await run()).toEqual({ status: 0, stderr: '' });
      expect(await readFile(join(target, files[0] ?? ''), 'utf8')).toBe('kept');
    } finally {
      await gate.close();
    }
  },
);

const daysOf = (month: string) =>
  new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).getUTCDate();
