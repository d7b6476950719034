import { spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir, runProgram } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { withFailingSensor, type Example } from './outage.ts';

const devices = join(projectDir, 'examples/devices');
/** MicroPython for this machine; null if there is none. */
export const micropython = findProgram('micropython');
// It finds what `mip install` installed; MICROPYPATH names a library elsewhere.
const { HOME = '/', MICROPYPATH } = process.env;
const libraries: Record<string, string> = MICROPYPATH === undefined ? {} : { MICROPYPATH };

export const hasUmqtt =
  micropython !== null &&
  spawnSync(micropython, ['-c', 'import umqtt.simple'], { env: { HOME, ...libraries } }).status ===
    0;

/** A board's files in a directory, with a config.py. Without boot.py, which is for boards only. */
export function onBoard(interpreter: string, protocol: 'mqtt' | 'http'): Example {
  const cwd = makeTemporaryDir();
  const board = join(devices, 'micropython');
  const names = readdirSync(board).filter((name) => name !== 'config.example.py');
  for (const name of names) copyFileSync(join(board, name), join(cwd, name));
  copyFileSync(join(devices, 'unsent.py'), join(cwd, 'unsent.py'));
  const main = join(cwd, 'main.py');
  writeFileSync(main, withFailingSensor(readFileSync(main, 'utf8'), '.py'));
  return {
    protocol,
    cwd,
    files: ['unsent.ndjson'],
    hasClock: false,
    start({ uuid, token, port }) {
      const lines = [
        `PROTOCOL = "${protocol}"`,
        `HOST, PORT, CA = "127.0.0.1", ${port}, None`,
        `UUID, TOKEN, INTERVAL = "${uuid}", "${token}", 0.2`,
      ];
      writeFileSync(join(cwd, 'config.py'), lines.join('\n'));
      return runProgram(interpreter, ['main.py'], { cwd, env: { HOME, ...libraries } });
    },
  };
}
