import pg from 'pg';
import type { Connection, PoolClient } from 'pg';
import { submit } from './submit.ts';

/**
 * What is sent in one turn of the event loop leaves in one piece: each write on its own is a system
 * call here and wakes the server there, which for a batch of messages costs as much as its rows.
 */
class Begin extends pg.Query {
  override submit = (connection: Connection): void => {
    connection.stream.cork();
    process.nextTick(() => connection.stream.uncork());
    connection.query('begin');
  };
}

/** Begins a transaction whose first statements follow at once, on a pipelined connection. */
export function beginPipelined(client: PoolClient): Promise<void> {
  return submit(client, new Begin('begin'));
}
