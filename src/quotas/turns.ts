/** Runs work of one account after what of it came before; that of others goes on beside it. */
export type InTurn = <T>(accountId: number, work: () => Promise<T>) => Promise<T>;

/**
 * What adds to an account waits for the account's row in the database. It waits here instead, where it
 * holds no connection that others need.
 */
export function createTurns(): InTurn {
  const last = new Map<number, Promise<unknown>>();
  return (accountId, work) => {
    const before = last.get(accountId) ?? Promise.resolve();
    const done = before.then(work, work);
    last.set(accountId, done);
    const forget = () => {
      if (last.get(accountId) === done) last.delete(accountId);
    };
    done.then(forget, forget);
    return done;
  };
}
