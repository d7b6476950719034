import { existsSync, readFileSync } from 'node:fs';
import type { ExpectStatic } from 'vitest';
import { openApp, type App, type Registration } from '../journeys/app.ts';
import type { Running } from '../journeys/process.ts';
import { startProxy } from '../faults/proxy.ts';

/** A program of examples/devices, as its user starts it. `cwd`: where it stores what it could not send. */
export type Example = {
  protocol: 'mqtt' | 'http';
  cwd: string;
  /** Its files in `cwd`, the oldest first. */
  files: string[];
  /** False: a board that must get the time before it can store a value in its file. */
  hasClock: boolean;
  start(at: { uuid: string; token: string; port: number }): Running | Promise<Running>;
};

type Value = { val: number; ts: number };
type Place = { url: string; mqttPort: number };
/** Tests that run side by side need one each. */
type Expecting = { expect: ExpectStatic };

const configuration = {
  device: { name: 'Example' },
  module: [{ moduleId: 'm', senses: [{ sId: '0x10' }] }],
};
const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [{ evId: 1, actions: {}, causes: [{ sId: '0x10', thresholds: { isGt: 80 } }] }],
    },
  ],
};

/** The values that it has stored; it may be writing the newest one. */
function readKept({ cwd, files }: Example): Value[] {
  const paths = files.map((file) => `${cwd}/${file}`).filter((path) => existsSync(path));
  const text = paths.map((path) => readFileSync(path, 'utf8')).join('');
  const found = text.match(/\{[^}]*\}/g) ?? [];
  return found.map((value) => JSON.parse(value) as Value);
}

/**
 * Runs an example through outages: the service is unreachable, the program is killed meanwhile, answers are lost. In
 * the end everything that it measured must be stored once and in order, and its profile is current.
 */
export async function liveThroughOutages(
  { expect }: Expecting,
  example: Example,
  service: Place,
): Promise<void> {
  const storedMore = (least: number) =>
    expect
      .poll(async () => (await listValues(app, uuid)).length, { timeout: 60_000 })
      .toBeGreaterThanOrEqual(least);
  const app = patient(await openApp(service.url));
  const registered = await app.call<Registration>('POST', '/v2/devices', configuration);
  const { deviceAuthUuid: uuid, deviceAuthToken: token } = registered;
  const target = example.protocol === 'http' ? Number(new URL(service.url).port) : service.mqttPort;
  const proxy = await startProxy(target);
  const start = async () => example.start({ uuid, token, port: proxy.port });
  const programs: Running[] = [];
  try {
    if (example.hasClock) proxy.cut();
    programs.push(await start());
    if (!example.hasClock) {
      await storedMore(1);
      proxy.cut();
    }
    await expect.poll(() => readKept(example).length).toBeGreaterThan(2);
    await stop(programs[0]);
    const before = unique([...(await listValues(app, uuid)), ...readKept(example)]);

    programs.push(await start());
    const pId = await install(app, uuid);
    proxy.heal();
    await storedMore(before.length + 1);
    await expect.poll(() => stateOf(app, pId)).toBe('current');

    // First what it sends is lost, then what it receives.
    proxy.cut('up/measurements');
    await expect.poll(() => proxy.isCut()).toBe(true);
    proxy.heal();
    const { length } = await listValues(app, uuid);
    proxy.deafen('up/measurements');
    await storedMore(length + 1);
    proxy.cut();
    proxy.heal();
    await storedMore(length + 4);
    await stop(programs[1]);
    const found = unique([...(await listValues(app, uuid)), ...readKept(example)]);
    expectComplete(expect, before, found);
  } catch (error) {
    const output = programs.map(({ stdout, stderr }) => stdout() + stderr()).join('\n---\n');
    throw new Error(`${(error as Error).message}\n${output}`, { cause: error });
  } finally {
    for (const program of programs) await stop(program);
    await proxy.close();
  }
}

/** Asks again after 503: on a busy machine, connecting to the database may take longer than the service waits. */
function patient(app: App): App {
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        return await app.call<T>(method, path, body);
      } catch (error) {
        if (tries === 5 || !(error as Error).message.startsWith('503 ')) throw error;
      }
    }
  };
  return { ...app, call };
}

async function install(app: App, uuid: string): Promise<string> {
  const purposes = [purpose];
  const body = { deviceAuthUuids: [uuid], purposes };
  return (await app.call<{ pId: string }>('POST', '/v2/devices/profile', body)).pId;
}

async function stateOf(app: App, pId: string): Promise<string | undefined> {
  type RollOut = { devices: { state: string }[] };
  return (await app.call<RollOut>('GET', `/v2/devices/profile/${pId}`)).devices[0]?.state;
}

async function listValues(app: App, uuid: string): Promise<Value[]> {
  const path = `/v2/measurements/${uuid}?limit=1000`;
  return (await app.call<{ measurements: Value[] }>('GET', path)).measurements;
}

async function stop(program: Running | undefined): Promise<void> {
  program?.child.kill('SIGKILL');
  await program?.ended();
}

const textOf = ({ ts, val }: Value) => `${ts} ${val}`;

/** Sorted by time. What was stored, but not yet forgotten when the program was killed, was found twice. */
function unique(found: Value[]): Value[] {
  const sorted = found.toSorted((a, b) => a.ts - b.ts);
  return [...new Map(sorted.map((value) => [textOf(value), value])).values()];
}

/** The n-th value that a program stores: it counts from 20 to 29 repeatedly, and its sensor fails each fourth time. */
const keptValue = (n: number) => 20 + ((n + Math.floor(n / 3)) % 10);

/** Replacements that make an example's sensor fail, by the ending of its name. */
const failing: Record<string, [string, string]> = {
  '.mjs': ['20 + (count % 10)', '(count % 4 === 3 ? NaN : 20 + (count % 10))'],
  '.py': ['return 20 + count % 10', 'return float("nan") if count % 4 == 3 else 20 + count % 10'],
  '.sh': [
    '$((20 + count % 10))',
    '"$([ $((count % 4)) = 3 ] && echo nan || echo $((20 + count % 10)))"',
  ],
  '.ino': ['return 20 + measured % 10', 'return measured % 4 == 3 ? NAN : 20 + measured % 10'],
};

/** An example's text with a sensor that gives NaN each fourth time. Throws if it has no sensor of that form. */
export function withFailingSensor(text: string, ending: string): string {
  const [sensor, fails] = failing[ending] ?? ['', ''];
  if (sensor === '' || !text.includes(sensor))
    throw new Error(`No sensor in an example of ${ending}`);
  return text.replace(sensor, () => fails);
}

/** `before`: what the first program measured. */
function expectComplete(expect: ExpectStatic, before: Value[], found: Value[]): void {
  const early = new Set(before.map(textOf));
  const isEarly = (value: Value) => early.has(textOf(value));
  expect(found.filter(isEarly).map(textOf)).toEqual(before.map(textOf));
  for (const values of [before, found.filter((value) => !isEarly(value))])
    expect(values.map(({ val }) => val)).toEqual(values.map((_, index) => keptValue(index)));
}
