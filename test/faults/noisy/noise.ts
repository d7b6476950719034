import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Target } from './target.ts';
import type { FromNoise, NoiseReport, ToNoise } from './noise-process.ts';

/** The noisy account's process, ready to begin. */
export type Noise = {
  start(): void;
  /** Ends it, and returns what it did. */
  stop(): Promise<NoiseReport>;
  close(): Promise<void>;
};

const program = new URL('noise-process.ts', import.meta.url).pathname;

/** The noisy account's process, its code loaded. */
export type NoiseProcess = {
  /** Prepares, without being measured, what the kind needs before it begins. Closes the process if that fails. */
  setUp(target: Target): Promise<Noise>;
  close(): Promise<void>;
};

/** Starts a process of its own for a kind, so that it does not slow down the measuring one. */
export function startNoise(kind: string): NoiseProcess {
  const child = fork(program, [], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const gone: Promise<FromNoise> = once(child, 'exit').then(() => ({
    failed: 'its process ended',
  }));
  const hear = async (): Promise<Exclude<FromNoise, { failed: string }>> => {
    const heard = once(child, 'message').then(([message]) => message as FromNoise);
    const message = await Promise.race([heard, gone]);
    if (typeof message === 'object' && 'failed' in message)
      throw new Error(`The noise ${kind}: ${message.failed}`);
    return message;
  };
  const tell = (message: ToNoise) => void (child.connected && child.send(message));
  const close = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  const noise: Noise = {
    start: () => tell('start'),
    async stop() {
      const report = hear();
      tell('stop');
      const said = await report;
      if (said === 'ready') throw new Error(`The noise ${kind} says that it is ready, at its end.`);
      return said;
    },
    close,
  };
  return {
    async setUp(target) {
      tell({ kind, setUp: target });
      try {
        await hear();
      } catch (error) {
        await close();
        throw error;
      }
      return noise;
    },
    close,
  };
}
