import { DomainError } from '../errors.ts';

export type PatienceOptions = {
  /** After this long without an answer, in milliseconds, a second connection checks the database. */
  patienceMs: number;
  /** The check, over a connection that nothing else uses; rejects soon where there is no answer. */
  ping: () => Promise<unknown>;
};

/** Waits for work of the database; rejects with `unavailable` where the server does not answer meanwhile. */
export type Wait = <T>(work: Promise<T>) => Promise<T>;

/**
 * Reports `unavailable` soon when the server has stopped answering, and waits for slow statements of one that
 * answers: a time-out alone cannot tell the two apart, a second connection can. Whether an abandoned
 * statement was executed is unknown.
 */
export function createPatience({ patienceMs, ping }: PatienceOptions): Wait {
  let asked: Promise<unknown> | null = null;
  const isThere = () => (asked ??= ping().finally(() => (asked = null)));

  return async (work) => {
    const { promise: hopeless, reject } = Promise.withResolvers<never>();
    const giveUp = (cause: unknown) =>
      reject(new DomainError('unavailable', 'The database does not answer.', { cause }));
    const ask = () => void isThere().then(askLater, giveUp);
    let cancel = afterRunning(patienceMs, ask);
    const askLater = () => {
      cancel = afterRunning(patienceMs, ask);
    };
    // The caller has given up: the result is ignored.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, hopeless]);
    } finally {
      cancel();
    }
  };
}

/** Rejects when the work takes longer; its result is then ignored. */
export async function withTimeout<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = afterRunning(timeoutMs, () => reject(new Error(`no answer in ${timeoutMs} ms`)));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

const steps = 5;

/**
 * Fires after this process itself has run for that long. A process that got no processor time wakes up with
 * its timers due and answers unread: such a pause counts as one step of several, so that the answers
 * are read first.
 */
function afterRunning(ms: number, act: () => void): () => void {
  let left = steps;
  const step = () => {
    left -= 1;
    if (left === 0) act();
    else timer = setTimeout(step, ms / steps);
  };
  let timer = setTimeout(step, ms / steps);
  return () => clearTimeout(timer);
}
