import { kindOf } from '../db/errors.ts';

const maxAttempts = 5;

/**
 * Runs a transaction again when the database chose it to end a deadlock: it takes the rows of many
 * devices, and so does ingest, in an order of its own.
 */
export async function retryDeadlock<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt === maxAttempts || kindOf(error) !== 'serialization') throw error;
    }
  }
}
