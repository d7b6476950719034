import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectDir, runProgram } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { withFailingSensor, type Example } from './outage.ts';

const run = promisify(execFile);
const shim = join(projectDir, 'test/examples/arduino');

/** A C++ compiler; null if there is none. */
export const compiler = findProgram('g++');

/** The folder `src` of the library arduino-mqtt; null if it is not given. */
export const mqttLibrary = process.env['ARDUINO_MQTT_SRC'] ?? null;

/** The sketch as a program of this machine. `arduino/` stands in for Arduino's core. */
export function asSketch(protocol: 'http' | 'mqtt'): Example {
  const cwd = makeTemporaryDir();
  cpSync(join(projectDir, 'examples/devices/arduino/sensor'), cwd, { recursive: true });
  const sketch = join(cwd, 'sensor.ino');
  writeFileSync(sketch, withFailingSensor(readFileSync(sketch, 'utf8'), '.ino'));
  let compiled: Promise<void> | null = null;
  return {
    protocol,
    cwd,
    files: ['sending.json', 'unsent.json'],
    hasClock: false,
    async start({ uuid, token, port }) {
      writeFileSync(join(cwd, 'secrets.h'), secretsOf({ protocol, uuid, token, port }));
      await (compiled ??= compile(cwd, protocol === 'mqtt' ? mqttLibrary : null));
      return runProgram(join(cwd, 'sensor'), [], { cwd });
    },
  };
}

type Secrets = { protocol: 'http' | 'mqtt'; uuid: string; token: string; port: number };

const secretsOf = ({ protocol, uuid, token, port }: Secrets) => `
#define OVER_MQTT ${protocol === 'mqtt' ? 1 : 0}
const char wifiName[] = "", wifiPassword[] = "", serviceHost[] = "127.0.0.1";
const uint16_t servicePort = ${port};
const char deviceUuid[] = "${uuid}", deviceToken[] = "${token}";
const uint32_t intervalMs = 200;
`;

async function compile(cwd: string, library: string | null): Promise<void> {
  const ours = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-I', shim, '-I', cwd];
  const sketch = ['-x', 'c++', '-include', 'Arduino.h', join(cwd, 'sensor.ino')];
  const program = [...sketch, join(shim, 'main.cpp'), '-o', join(cwd, 'sensor')];
  if (library === null) return void (await run(compiler ?? '', [...ours, ...program]));
  const parts = readdirSync(join(library, 'lwmqtt')).filter((name) => name.endsWith('.c'));
  const objects = parts.map((name) => join(cwd, `${name}.o`));
  for (const [index, name] of parts.entries())
    await run('gcc', ['-c', join(library, 'lwmqtt', name), '-o', objects[index] ?? '']);
  const wrapper = join(cwd, 'MQTTClient.o');
  const source = join(library, 'MQTTClient.cpp');
  await run(compiler ?? '', ['-std=c++17', '-I', shim, '-c', source, '-o', wrapper]);
  // -x must not apply to what is compiled already.
  const linked = ['-x', 'none', wrapper, ...objects];
  await run(compiler ?? '', [...ours, '-isystem', library, ...program, ...linked]);
}
