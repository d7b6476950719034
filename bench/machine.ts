import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';

/** The machine and the versions behind the figures. */
export type Machine = Record<string, string>;

export function describeMachine(database: string): Machine {
  return {
    date: new Date().toISOString().slice(0, 10),
    cores: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    kernel: release(),
    node: process.version,
    aedes: versionOf('aedes'),
    mqtt: versionOf('mqtt'),
    koa: versionOf('koa'),
    pg: versionOf('pg'),
    database,
    mosquitto: firstLineOf('mosquitto', ['-h']),
    redis: firstLineOf('redis-server', ['--version']),
    commit: firstLineOf('git', ['rev-parse', '--short', 'HEAD']),
  };
}

/** The commit of a checkout, with `-dirty` if files differ from it. */
export function commitOf(dir: string): string {
  return firstLineOf('git', ['describe', '--always', '--dirty', '--exclude=*'], dir);
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function firstLineOf(program: string, args: string[], cwd = import.meta.dirname): string {
  try {
    const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };
    const text = execFileSync(program, args, { encoding: 'utf8', env, cwd });
    return text.split('\n')[0] ?? '';
  } catch (error) {
    // `mosquitto -h` exits with an error after printing its version.
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    return output.split('\n')[0] || 'none';
  }
}
