import { createHash } from 'node:crypto';
import pg from 'pg';
import { pause } from '../lib/wait.ts';
import { withTimeout } from './patience.ts';

/** `askMs + answerMs` is to stay well below `forgetMs`: who loses it knows before anybody gets it. */
export type LeasePace = {
  /** Between two questions: whoever waits asks for the lease, whoever holds it whether it is there. */
  askMs: number;
  /** The holder gives it up when an answer takes longer. */
  answerMs: number;
  /** PostgreSQL takes it back from a holder that has asked nothing for so long. */
  forgetMs: number;
};

export type LeaseOptions = {
  connectionString: string;
  /** What is held: of all who say the same name, one at a time holds it. */
  name: string;
  /** Shown to operators, in pg_stat_activity. */
  holder: string;
  onHeld: () => void;
  /** From now on somebody else may get it; not called for what is given back. */
  onLost: () => void;
  /** Somebody else holds it; said once until it is held. */
  onWaiting?: () => void;
  /** The database is away; said once, and tried again. */
  onError: (error: unknown) => void;
  pace?: LeasePace;
};

export type DatabaseLease = {
  /** Gives back what is held, so that somebody else gets it, and competes no more until `compete`. */
  rest(): void;
  compete(): void;
  /** Whether the database answered when it was asked last. */
  isThere(): boolean;
  /** Competes no more; what is held is given back when `finish` has settled. */
  release(finish: () => Promise<void>): Promise<void>;
};

const usualPace: LeasePace = { askMs: 500, answerMs: 4_000, forgetMs: 10_000 };

/**
 * Competes for a lease until it is released: a lock of a PostgreSQL session of its own, which ends
 * with the session, however that ends. Resolves when it was asked for once. Asks again and again
 * rather than waiting in the server, where a statement that waits would hold back vacuum.
 */
export async function startLease(options: LeaseOptions): Promise<DatabaseLease> {
  const { name, onHeld, onLost, onWaiting, onError, pace = usualPace } = options;
  const key = createHash('sha256').update(name).digest().readBigInt64BE().toString();
  const stopping = new AbortController();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  let isWanted = true;
  let isHeld = false;
  /** The session has the lock, though nobody here holds the lease any more. */
  let isOwed = false;
  let isWaiting = false;
  let isAway = false;

  function lose(): void {
    if (!isHeld) return;
    isHeld = false;
    onLost();
  }

  function fail(error: unknown): void {
    if (!isAway) onError(error);
    isAway = true;
  }

  async function ask(client: pg.Client): Promise<void> {
    if (isOwed) {
      await withTimeout(client.query('select pg_advisory_unlock($1)', [key]), pace.answerMs);
      isOwed = false;
      return;
    }
    const wants = isWanted && !isHeld;
    const question = wants
      ? client.query<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [key])
      : client.query<{ got: boolean }>('select false as got');
    const { rows } = await withTimeout(question, pace.answerMs);
    isAway = false;
    if (rows[0]?.got) take();
    else if (wants) wait();
  }

  function take(): void {
    isWaiting = false;
    // Where nobody wants it any more it goes back, or with the session.
    isOwed = !isWanted;
    if (isOwed) return;
    isHeld = true;
    onHeld();
  }

  function wait(): void {
    if (!isWaiting && isWanted) onWaiting?.();
    isWaiting = true;
  }

  async function useOneSession(): Promise<void> {
    isOwed = false;
    const client = openSession(options, pace);
    const ended = new AbortController();
    const over = AbortSignal.any([ended.signal, stopping.signal]);
    client.on('error', fail);
    client.on('end', () => {
      ended.abort();
      lose();
    });
    try {
      await client.connect();
      while (!over.aborted) {
        await ask(client);
        onAsked();
        await pause(pace.askMs, over);
      }
    } finally {
      lose();
      // A server that does not answer does not say goodbye either.
      await withTimeout(client.end(), pace.answerMs).catch(() => undefined);
    }
  }

  async function compete(): Promise<void> {
    while (!stopping.signal.aborted) {
      await useOneSession().catch(fail);
      onAsked();
      await pause(pace.askMs, stopping.signal);
    }
  }

  const competing = compete();
  await asked;
  return {
    rest() {
      isWanted = false;
      isWaiting = false;
      isOwed ||= isHeld;
      isHeld = false;
    },
    compete: () => void (isWanted = true),
    isThere: () => !isAway,
    async release(finish) {
      isWanted = false;
      try {
        await finish();
      } finally {
        isHeld = false;
        stopping.abort();
        await competing;
      }
    },
  };
}

function openSession({ connectionString, holder }: LeaseOptions, pace: LeasePace): pg.Client {
  return new pg.Client({
    connectionString,
    application_name: holder,
    connectionTimeoutMillis: pace.answerMs,
    // Whatever keeps the holder from asking (a dead machine, network or process) ends the session.
    options: `-c idle_session_timeout=${pace.forgetMs}`,
  });
}
