import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';

// A process with an embedded database, for tests that kill it. `process.argv[2]`: the data directory.
const log = { info: () => undefined, warn: () => undefined };
const database = await startEmbeddedDatabase({ dataDir: process.argv[2] ?? '', log });
console.log(database.connectionString);
setInterval(() => undefined, 60_000);
