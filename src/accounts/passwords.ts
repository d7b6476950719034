import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { DomainError } from '../errors.ts';
import { type Asker, FairQueue } from '../lib/fair-queue.ts';

/** RFC 9106 argon2id, the package's default variant, with OWASP's parameters: 19 MiB, 2 passes, 1 lane. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The hash of a password that nobody has, at the same cost: verified without an account, to take as long. */
const nobody =
  '$argon2id$v=19$m=19456,t=2,p=1$kko+BdQAa3QWaiVe2Yxj6Q$ah0VRj1rP7eSdx8YODiuVk44GRGasgPpoIUVM5A2SsQ';

/** `as-sent`: the hash is from before passwords were normalized, of a password that NFC changes. */
type PasswordMatch = 'normalized' | 'as-sent' | null;

export type Passwords = {
  /** Hashes the password in NFC (RFC 8265 section 4.2): a Mac types `é` as two characters, a PC as one. */
  hash(password: string, asker: Asker): Promise<string>;
  /**
   * How the password matches the hash; null if it does not. A null hash (no such account) takes as long. `guard` runs
   * when the work leaves the queue; verify rejects with what it throws.
   */
  verify(
    passwordHash: string | null,
    password: string,
    asker: Asker,
    guard?: () => Promise<void>,
  ): Promise<PasswordMatch>;
};

/**
 * Hashes on libuv's threads, on one processor fewer than there are, so that the event loop always has one. Addresses
 * get fair shares and, if there is more than one thread, no address takes all of them. Both functions reject with
 * `unavailable` if too many wait.
 */
export function createPasswords({
  parallel = Math.max(1, Math.min(3, availableParallelism() - 1)),
  maxWaiting = 256,
} = {}): Passwords {
  const perAddress = Math.max(1, parallel - 1);
  const queue = createRunFairly({ parallel, perAddress, maxWaiting });
  return {
    hash: (password, asker) => queue(asker, () => hash(password.normalize('NFC'), cost)),
    verify: (passwordHash, password, asker, guard = async () => {}) =>
      queue(asker, async () => {
        await guard();
        const match = await findMatch(passwordHash ?? nobody, password);
        return passwordHash === null ? null : match;
      }),
  };
}

/** A password that is not in NFC is tried in both forms, so that a wrong one takes as long for every account. */
async function findMatch(passwordHash: string, password: string): Promise<PasswordMatch> {
  const normalized = password.normalize('NFC');
  if (await verify(passwordHash, normalized)) return 'normalized';
  return normalized !== password && (await verify(passwordHash, password)) ? 'as-sent' : null;
}

/** Runs work from a fair queue; rejects with `unavailable` if the queue is full. */
export type RunFairly = <T>(asker: Asker, work: () => Promise<T>) => Promise<T>;

type Waiting = PromiseWithResolvers<void>;

/**
 * Runs at most `parallel` at a time, `perAddress` of them for one address, with at most `maxWaiting` in the queue.
 * Addresses are served round robin, and so are the accounts of an address. When the queue is full, the account with the
 * most waiting loses its newest.
 */
export function createRunFairly({
  parallel,
  perAddress,
  maxWaiting,
}: {
  parallel: number;
  perAddress: number;
  maxWaiting: number;
}): RunFairly {
  const fairQueue = new FairQueue<Waiting>();
  const running = new Map<string, number>();
  let allRunning = 0;

  const mayRun = (address: string) => (running.get(address) ?? 0) < perAddress;
  const startNext = (): void => {
    while (allRunning < parallel) {
      const next = fairQueue.take(mayRun);
      if (!next) return;
      allRunning += 1;
      running.set(next.address, (running.get(next.address) ?? 0) + 1);
      next.thing.resolve();
    }
  };
  const finish = (address: string): void => {
    allRunning -= 1;
    const left = (running.get(address) ?? 0) - 1;
    if (left > 0) running.set(address, left);
    else running.delete(address);
    startNext();
  };

  return async (asker, work) => {
    const waiting: Waiting = Promise.withResolvers();
    fairQueue.add(asker, waiting);
    startNext();
    if (fairQueue.waiting > maxWaiting) fairQueue.takeFromLongest().reject(tooMuch());
    await waiting.promise;
    try {
      return await work();
    } finally {
      finish(asker.address);
    }
  };
}

function tooMuch(): DomainError {
  return new DomainError('unavailable', 'Too many requests are waiting for this already.', {
    retryAfterSeconds: 2,
  });
}
