import { StartError } from '../../start-error.ts';

/** The error for a second service on one data directory. */
export function inUse(dataDir: string, heldBy: string): StartError {
  return new StartError(
    `DATA_DIR ${dataDir}: another Sensorium (${heldBy}) is running on it. Stop that one, or give this one a DATA_DIR and ports of its own.`,
  );
}
