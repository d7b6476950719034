import { backoffMs, pause } from '../../lib/wait.ts';
import type { GuardConnection } from './guard.ts';
import type { Log } from '../../log/logger.ts';

export type SuperviseOptions = {
  /** The connection whose end says that the server, or this session with it, is gone. */
  connection: GuardConnection;
  log: Pick<Log, 'info' | 'warn'>;
  /** Starts the server where it no longer runs, and gives a new connection to watch. */
  recover: () => Promise<GuardConnection>;
};

const retry = { firstMs: 100, maxMs: 2_000 };

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
      log.warn(
        { event: 'database.lost' },
        'The connection that watches the database ended: starting the database again if it is gone.',
      );
      await bringBack();
    }
  }

  async function bringBack(): Promise<void> {
    for (let failures = 1; !stopping.signal.aborted; failures += 1) {
      try {
        current = await recover();
        log.info({ event: 'database.back' }, 'The database is back.');
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.warn({ event: 'database.away', reason }, 'The database is not back yet.');
      }
      await pause(backoffMs(failures, retry), stopping.signal);
    }
  }
}
