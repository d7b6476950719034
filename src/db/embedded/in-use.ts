import { StartError } from '../../start-error.ts';
import { isAlive } from './postmaster.ts';

/**
 * The error for a second service on one data directory. It may pass where the process has ended: the server takes a
 * moment to notice that, and longer on a busy machine. `heldBy`: "process 123", as the lock's session says.
 */
export function inUse(dataDir: string, heldBy: string): StartError {
  const pid = Number(/^process (\d+)$/.exec(heldBy)?.[1]);
  return new StartError(
    `DATA_DIR ${dataDir}: another Sensorium (${heldBy}) is running on it. Stop that one, or give this one a DATA_DIR and ports of its own.`,
    { mayPass: pid > 0 && !isAlive(pid) },
  );
}
