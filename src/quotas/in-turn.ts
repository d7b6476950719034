/** Runs work of one account when it is its turn; that of others goes on beside it. */
export type InTurn = <T>(accountId: number, work: () => Promise<T>) => Promise<T>;

type Queue = { running: number; waiting: (() => void)[] };

/**
 * What adds to an account waits for the account's row in the database. It waits here instead, where it
 * holds no connection that others need: `parallel` at a time may, so that the row is never left alone.
 */
export function createInTurn(parallel: number): InTurn {
  const queues = new Map<number, Queue>();

  async function enter(accountId: number): Promise<Queue> {
    const queue = queues.get(accountId) ?? { running: 0, waiting: [] };
    queues.set(accountId, queue);
    if (queue.running < parallel) queue.running += 1;
    else await new Promise<void>((resolve) => queue.waiting.push(resolve));
    return queue;
  }

  function leave(accountId: number, queue: Queue): void {
    const next = queue.waiting.shift();
    // Whoever is next takes the place as it is.
    if (next) next();
    else if ((queue.running -= 1) === 0) queues.delete(accountId);
  }

  return async (accountId, work) => {
    const queue = await enter(accountId);
    try {
      return await work();
    } finally {
      leave(accountId, queue);
    }
  };
}
