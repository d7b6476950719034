import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { createFairQueue } from './fair-queue.ts';
import type { Asker } from '../lib/fair-turns.ts';

/** RFC 9106 argon2id, the package's default variant, with OWASP's parameters: 19 MiB, 2 passes, 1 lane. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A password nobody has, at the same cost: verified where there is no account, so that it takes as long. */
const nobody =
  '$argon2id$v=19$m=19456,t=2,p=1$kko+BdQAa3QWaiVe2Yxj6Q$ah0VRj1rP7eSdx8YODiuVk44GRGasgPpoIUVM5A2SsQ';

export type Passwords = {
  hash(password: string, turn: Asker): Promise<string>;
  /**
   * Whether the password is the one behind the hash; null, for nobody's, takes as long. `guard` runs
   * first, when the turn has come. Rejects with what `guard` throws.
   */
  verify(
    passwordHash: string | null,
    password: string,
    turn: Asker,
    guard?: () => Promise<void>,
  ): Promise<boolean>;
};

/**
 * Hashes on libuv's threads, on one processor fewer than there are: whatever happens here, the event
 * loop keeps one. Addresses take turns, and where there is more than one thread an address leaves one
 * to the others. Both reject with `unavailable` when too many wait.
 */
export function createPasswords({
  parallel = Math.max(1, Math.min(3, availableParallelism() - 1)),
  maxWaiting = 256,
} = {}): Passwords {
  const perAddress = Math.max(1, parallel - 1);
  const queue = createFairQueue({ parallel, perAddress, maxWaiting });
  return {
    hash: (password, turn) => queue(turn, () => hash(password, cost)),
    verify: (passwordHash, password, turn, guard = async () => {}) =>
      queue(turn, async () => {
        await guard();
        return (await verify(passwordHash ?? nobody, password)) && passwordHash !== null;
      }),
  };
}
