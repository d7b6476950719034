import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';

// Does what a start of the service does with its database (src/assembly/storage.ts), and nothing else, in a fraction
// of the processor time. Finds the database by the service's variables.
const log = { info: () => undefined, warn: () => undefined };
const { DATABASE_URL, DATA_DIR: dataDir = '', MIGRATIONS_DIR: dir } = process.env;
const embedded = DATABASE_URL === undefined ? await startEmbeddedDatabase({ dataDir, log }) : null;
await migrate(DATABASE_URL ?? embedded?.connectionString ?? '', { log, dir });
await embedded?.stop();
