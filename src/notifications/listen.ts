import pg from 'pg';
import { pause } from '../lib/wait.ts';

export type ListenOptions = {
  connectionString: string;
  channel: string;
  /** Called for each notification, and when the connection is there again: some may be lost. */
  onNotified: () => void;
  onError: (error: unknown) => void;
};

const retryMs = 5_000;

/** Listens on a connection of its own, which is opened again where it breaks, until it is closed. */
export function listenForMessages(options: ListenOptions): { close: () => Promise<void> } {
  const closing = new AbortController();
  const ended = listenOn(options, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

async function listenOn(
  { connectionString, channel, onNotified, onError }: ListenOptions,
  closing: AbortSignal,
): Promise<void> {
  while (!closing.aborted) {
    const client = new pg.Client({ connectionString });
    const broken = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      closing.addEventListener('abort', () => resolve(), { once: true });
    });
    client.on('notification', onNotified);
    try {
      await client.connect();
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      onNotified();
      await broken;
    } catch (error) {
      onError(error);
    }
    await client.end().catch(() => undefined);
    await pause(retryMs, closing);
  }
}
