import { openDatabase } from '../../src/db/database.ts';
import { schemaOf } from '../database.ts';
import { listEvents } from '../../src/events/store.ts';

// Only the statement behind `GET /v2/events/{uuid}`, through the service's own pool. Arguments: database's URL,
// connections of the pool, queries at once. Devices' ids on stdin.
const [connectionString = '', maxConnections = '', atOnce = ''] = process.argv.slice(2);
const db = openDatabase({
  connectionString,
  schema: await schemaOf(connectionString),
  maxConnections: Number(maxConnections),
  connectTimeoutMs: 5_000,
  statementTimeoutMs: 10_000,
  onIdleError: (error) => console.error(error.message),
});
let deviceIds: number[] = [];
let answered = 0;

async function ask(): Promise<never> {
  for (;;) {
    const deviceId = deviceIds[Math.floor(Math.random() * deviceIds.length)] ?? 0;
    await listEvents(db, { deviceId, start: 0 }, Date.now());
    answered += 1;
  }
}

process.stdin.on('data', (data) => {
  const [word, ...ids] = data.toString().trim().split(' ');
  if (word === 'devices') deviceIds = ids.map(Number);
  if (word === 'start') for (let i = 0; i < Number(atOnce); i += 1) void ask();
  console.log(JSON.stringify({ answered }));
});
console.log(JSON.stringify({ ready: true }));
