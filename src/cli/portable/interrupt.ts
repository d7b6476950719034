import process from 'node:process';
import { StartError } from '../../start-error.ts';

const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs `work` with a signal that aborts when the process is asked to end, so that it can undo what it
 * began. Then throws a StartError that says what remains.
 */
export async function untilInterrupted<T>(
  left: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort();
  for (const name of signals) process.once(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (cause) {
    throw controller.signal.aborted ? new StartError(`Interrupted. ${left}`, { cause }) : cause;
  } finally {
    for (const name of signals) process.off(name, interrupt);
  }
}
