import { createServer } from 'node:net';
import { Aedes } from 'aedes';
import { announce } from './announce.ts';

// Bare aedes: in memory, without authentication or storage.
const broker = await Aedes.createBroker();
const server = createServer({ noDelay: true }, broker.handle);
server.listen(0, '127.0.0.1', 4_096, () => announce(server));
