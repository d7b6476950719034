// Runs what docs/devices.md tells people to copy, as its user does, against the running service.
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { projectDir, runProgram } from '../journeys/process.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { debianPython, hasPaho } from '../support/python.ts';
import { asSketch, compiler, mqttLibrary } from './arduino.ts';
import { hasUmqtt, micropython, onBoard } from './micropython.ts';
import { liveThroughOutages, withFailingSensor, type Example } from './outage.ts';

const devices = join(projectDir, 'examples/devices');

/** An example that gets its address from the environment. `interval` in seconds. */
function withEnvironment(program: string, name: string, interval = '0.2'): Example {
  const protocol = name.startsWith('http') ? 'http' : 'mqtt';
  const cwd = makeTemporaryDir();
  const copy = copyTo(cwd, name);
  return {
    protocol,
    cwd,
    files: ['unsent.ndjson'],
    hasClock: true,
    start: ({ uuid, token, port }) =>
      runProgram(program, [copy], {
        cwd,
        env: {
          DEVICE_UUID: uuid,
          DEVICE_TOKEN: token,
          DEVICE_PORT: String(port),
          DEVICE_URL: `mqtt://127.0.0.1:${port}`,
          DEVICE_HTTP_URL: `http://127.0.0.1:${port}`,
          INTERVAL: interval,
          UNSENT_FILE: 'unsent.ndjson',
          PYTHONUNBUFFERED: '1',
        },
      }),
  };
}

/** Copies an example, with a sensor that fails now and then. */
function copyTo(dir: string, name: string): string {
  symlinkSync(join(projectDir, 'node_modules'), join(dir, 'node_modules'));
  for (const helper of ['unsent.mjs', 'unsent.py'])
    copyFileSync(join(devices, helper), join(dir, helper));
  const text = readFileSync(join(devices, name), 'utf8');
  writeFileSync(join(dir, name), withFailingSensor(text, extname(name)));
  return join(dir, name);
}

describe.concurrent('a device loses no measurement, and takes its profile', () => {
  let service: TestService;
  beforeAll(async () => void (service = await testService()));
  afterAll(() => service?.close());

  test('device.mjs', (context) =>
    liveThroughOutages(context, withEnvironment('node', 'device.mjs'), service));

  test('http-device.mjs', (context) =>
    liveThroughOutages(context, withEnvironment('node', 'http-device.mjs'), service));

  test('device.py', (context) => {
    context.skip(!hasPaho, "Debian's Python has no paho.");
    return liveThroughOutages(context, withEnvironment(debianPython, 'device.py'), service);
  });

  test('http_device.py', (context) => {
    context.skip(findProgram('python3') === null, 'no python3');
    return liveThroughOutages(context, withEnvironment('python3', 'http_device.py'), service);
  });

  test('http-device.sh', (context) => {
    context.skip(findProgram('curl') === null, 'no curl');
    return liveThroughOutages(context, withEnvironment('sh', 'http-device.sh', '1'), service);
  });

  test('micropython/ over HTTP', (context) => {
    context.skip(micropython === null, 'no micropython');
    return liveThroughOutages(context, onBoard(micropython ?? '', 'http'), service);
  });

  test('micropython/ over MQTT', (context) => {
    context.skip(!hasUmqtt, 'no micropython with umqtt');
    return liveThroughOutages(context, onBoard(micropython ?? '', 'mqtt'), service);
  });

  // It is valid Python too, so it also runs without MicroPython.
  test('micropython/ over HTTP, in Python', (context) => {
    context.skip(findProgram('python3') === null, 'no python3');
    return liveThroughOutages(context, onBoard('python3', 'http'), service);
  });

  test('arduino/ over HTTP', (context) => {
    context.skip(compiler === null, 'no g++');
    return liveThroughOutages(context, asSketch('http'), service);
  });

  test('arduino/ over MQTT', (context) => {
    context.skip(
      compiler === null || mqttLibrary === null,
      'no g++, or ARDUINO_MQTT_SRC names no arduino-mqtt',
    );
    return liveThroughOutages(context, asSketch('mqtt'), service);
  });
});
