import { setTimeout as delay } from 'node:timers/promises';
import type { GuardConnection } from './guard.ts';

export type SuperviseOptions = {
  /** The connection whose end says that the server, or this session with it, is gone. */
  connection: GuardConnection;
  log: { info(message: string): void; warn(message: string): void };
  /** Starts the server where it no longer runs, and gives a new connection to watch. */
  recover: () => Promise<GuardConnection>;
};

const firstPauseMs = 100;
const longestPauseMs = 2_000;

/** Watches over the server for as long as the service runs. */
export function supervise({ connection, log, recover }: SuperviseOptions): {
  stop(): Promise<void>;
} {
  const stopping = new AbortController();
  let current = connection;
  const watching = watch();
  return {
    async stop() {
      stopping.abort();
      await current.client.end().catch(() => undefined);
      await watching;
    },
  };

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await current.ended;
      if (stopping.signal.aborted) return;
      log.warn('The connection that watches over the database ended: looking after it.');
      await bringBack();
    }
  }

  async function bringBack(): Promise<void> {
    for (let pauseMs = firstPauseMs; !stopping.signal.aborted; pauseMs *= 2) {
      try {
        current = await recover();
        log.info('The database is back.');
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.warn(`The database is not back yet: ${reason}`);
      }
      const pause = Math.min(pauseMs, longestPauseMs);
      await delay(pause, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
}
