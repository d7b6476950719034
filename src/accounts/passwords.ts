import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { createFairQueue } from './fair-queue.ts';
import type { Asker } from '../lib/fair-turns.ts';

/** RFC 9106 argon2id, the package's default variant, with OWASP's parameters: 19 MiB, 2 passes, 1 lane. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A password nobody has, at the same cost: verified where there is no account, so that it takes as long. */
const nobody =
  '$argon2id$v=19$m=19456,t=2,p=1$kko+BdQAa3QWaiVe2Yxj6Q$ah0VRj1rP7eSdx8YODiuVk44GRGasgPpoIUVM5A2SsQ';

/** `as-sent`: the hash was made before passwords were normalized, of characters that are written otherwise in NFC. */
export type PasswordMatch = 'normalized' | 'as-sent' | null;

export type Passwords = {
  /** Of the password in NFC (RFC 8265 section 4.2): a Mac types `é` as two characters, a PC as one. */
  hash(password: string, turn: Asker): Promise<string>;
  /**
   * How the password is the one behind the hash, null where it is not; a hash of null, for nobody's, takes as long.
   * `guard` runs first, when the turn has come. Rejects with what `guard` throws.
   */
  verify(
    passwordHash: string | null,
    password: string,
    turn: Asker,
    guard?: () => Promise<void>,
  ): Promise<PasswordMatch>;
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
    hash: (password, turn) => queue(turn, () => hash(password.normalize('NFC'), cost)),
    verify: (passwordHash, password, turn, guard = async () => {}) =>
      queue(turn, async () => {
        await guard();
        const match = await findMatch(passwordHash ?? nobody, password);
        return passwordHash === null ? null : match;
      }),
  };
}

/** What is not in NFC is tried in both forms, so that a wrong password takes as long for every account. */
async function findMatch(passwordHash: string, password: string): Promise<PasswordMatch> {
  const normalized = password.normalize('NFC');
  if (await verify(passwordHash, normalized)) return 'normalized';
  return normalized !== password && (await verify(passwordHash, password)) ? 'as-sent' : null;
}
