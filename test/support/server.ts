import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A server that runs as a child process on 127.0.0.1. */
export type Server = {
  port: number;
  pid(): number;
  /** Sends the signal (SIGKILL by default) and waits until the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  pause(): void;
  resume(): void;
};

/** Starts the program. Resolves when its port accepts connections. */
export async function startServer(program: string, args: string[], port: number): Promise<Server> {
  let child = await spawnReady(program, args, port);
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    await ended;
  };
  return {
    port,
    pid: () => child.pid ?? 0,
    kill,
    async restart() {
      await kill('SIGTERM');
      child = await spawnReady(program, args, port);
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
}

async function spawnReady(program: string, args: string[], port: number): Promise<ChildProcess> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
  // Also if a test fails before its clean-up.
  const abandon = () => child.kill('SIGKILL');
  process.once('exit', abandon);
  child.once('exit', () => process.off('exit', abandon));
  let output = '';
  child.stdout.on('data', (chunk) => (output = (output + String(chunk)).slice(-4_000)));
  child.stderr.on('data', (chunk) => (output = (output + String(chunk)).slice(-4_000)));
  const failed = once(child, 'error').then(([error]) => Promise.reject(error as Error));
  failed.catch(() => undefined);
  const deadline = Date.now() + 60_000;
  while (!(await Promise.race([accepts(port), failed]))) {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${output}`);
    if (Date.now() > deadline) throw new Error(`${program} does not listen: ${output}`);
    await delay(20);
  }
  return child;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
