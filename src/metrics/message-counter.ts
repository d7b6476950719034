import { Counter, type Registry } from 'prom-client';

/** Counts devices' messages by kind of topic. With every message: the library is told when somebody asks. */
export function countMessages(
  registry: Registry,
  { name, help }: { name: string; help: string },
): (kind: string) => void {
  const messages = new Map<string, number>();
  new Counter({
    name,
    help,
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, count] of messages) this.inc({ kind }, count);
      messages.clear();
    },
  });
  return (kind) => void messages.set(kind, (messages.get(kind) ?? 0) + 1);
}

/** Bounds of what devices wait for, in seconds. */
export const waitBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
