import type { Duplex } from 'node:stream';
import { Bucket, type Rate } from './bucket.ts';

export type AdmissionOptions = {
  connectsPerSecond: number;
  maxWaiting: number;
  now: () => number;
  onTooMany: () => void;
};

export type Admission = ReturnType<typeof createAdmission>;

type Waiting = { socket: Duplex; enter: () => void };

/** Lets new connections in at a bounded rate, first come first served; until then none is read. */
export function createAdmission(options: AdmissionOptions) {
  const { connectsPerSecond, maxWaiting, now, onTooMany } = options;
  const rate: Rate = { perSecond: connectsPerSecond, burst: Math.max(1, connectsPerSecond / 10) };
  const bucket = new Bucket(rate, now());
  const queue: Waiting[] = [];
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;

  function drain(): void {
    timer = null;
    let entered = 0;
    for (; entered < queue.length && bucket.waitMs(rate, now()) === 0; entered++) {
      const { socket, enter } = queue[entered] as Waiting;
      if (socket.destroyed) continue;
      bucket.take(1, rate, now());
      enter();
    }
    queue.splice(0, entered);
    if (queue.length > 0) timer = setTimeout(drain, 5);
  }

  return {
    offer(socket: Duplex, enter: () => void): void {
      socket.on('error', () => socket.destroy());
      if (isClosed || queue.length >= maxWaiting) {
        onTooMany();
        socket.destroy();
        return;
      }
      queue.push({ socket, enter });
      if (!timer) drain();
    },

    countWaiting: () => queue.length,

    close(): void {
      isClosed = true;
      if (timer) clearTimeout(timer);
      for (const { socket } of queue.splice(0)) socket.destroy();
    },
  };
}
