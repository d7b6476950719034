import { Logger, runMigrations } from 'graphile-worker';

/** Creates the tables in which 0.2.0 and 0.3.0 keep their jobs, as their library does. */
export async function makeJobTables(connectionString: string): Promise<void> {
  await runMigrations({ connectionString, logger: silentLogger() });
}

function silentLogger() {
  return new Logger(() => () => undefined);
}
