/** The messages that a device kept; `done` resolves when all of them are acknowledged. */
export type Backlog = {
  next: () => string | null;
  acknowledged: () => void;
  failed: (error: unknown) => void;
  done: Promise<void>;
};

/** One value per second until now, in messages of `each`. */
export function createBacklog(count: number, each: number): Backlog {
  const startTs = Date.now() - count * 1_000;
  const { promise: done, resolve, reject: failed } = Promise.withResolvers<void>();
  const messages = Math.ceil(count / each);
  let sent = 0;
  let acknowledged = 0;
  const valueOf = (n: number) => ({
    sId: '0x01',
    val: 20 + (n % 50) / 10,
    ts: startTs + n * 1_000,
  });
  return {
    done,
    failed,
    next() {
      if (sent === messages) return null;
      const first = sent * each;
      sent += 1;
      if (each === 1) return JSON.stringify(valueOf(first));
      const length = Math.min(each, count - first);
      return JSON.stringify(Array.from({ length }, (_, n) => valueOf(first + n)));
    },
    acknowledged() {
      acknowledged += 1;
      if (acknowledged === messages) resolve();
    },
  };
}
