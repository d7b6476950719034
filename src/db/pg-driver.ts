import pg from 'pg';
import type { Connection, PoolClient, Query } from 'pg';
import { DomainError } from '../errors.ts';

/** What the driver's own connection has beside what its types say. */
type CopyConnection = Connection & {
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
};

/** Sends a statement that writes itself to the connection; resolves when the server has done it. */
function submit(client: PoolClient, query: Query): Promise<void> {
  return new Promise((resolve, reject) => {
    const callback = (error: Error | null) => (error ? reject(error) : resolve());
    client.query(Object.assign(query, { callback }));
  });
}

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

/**
 * The rows follow the statement at once. The driver would wait to be asked for them, and on a
 * pipelined connection the statements behind would be taken for rows meanwhile; a server that refuses
 * the statement throws away what follows it (PostgreSQL's protocol, "COPY Operations").
 */
class CopyIn extends pg.Query {
  readonly #text: string;
  readonly #bytes: Buffer;

  constructor(text: string, bytes: Buffer) {
    super(text);
    this.#text = text;
    this.#bytes = bytes;
  }

  override submit = (connection: Connection): void => {
    const to = connection as CopyConnection;
    to.query(this.#text);
    to.sendCopyFromChunk(this.#bytes);
    to.endCopyFrom();
  };

  handleCopyInResponse(): void {}
}

/** Runs `COPY … FROM STDIN`, with `bytes` in the format that the statement names. */
export function copyIn(client: PoolClient, statement: string, bytes: Buffer): Promise<void> {
  return submit(client, new CopyIn(statement, bytes));
}

/** What PostgreSQL waits in for a synchronous standby (its source, syncrep.c); notices name it in every language. */
const standbyWait = 'SyncRepWaitForLSN';

/**
 * Fails a commit that was told to wait no longer for the synchronous standby. The server says so in a warning, and answers
 * like any other commit: the transaction is on the primary alone, and a failover would lose it. The connection is
 * given up with it, as for an error of its socket.
 */
export function failUnreplicated(client: pg.ClientBase): void {
  const { connection } = client as pg.PoolClient;
  client.on('notice', ({ routine }) => {
    if (routine !== standbyWait) return;
    const message =
      'The server was told not to wait for the synchronous standby; this commit may be lost in ' +
      'a failover.';
    connection.emit('error', new DomainError('unavailable', message));
  });
}

const refused = ['authenticationCleartextPassword', 'authenticationMD5Password'];

/**
 * A client that proves its password by SCRAM only. The driver has no setting for it, and would tell
 * the password to whoever took a port over and asks for it: here that ends the connection.
 */
export function createScramClient(config: pg.ClientConfig): pg.Client {
  const client = new pg.Client(config);
  // Without a listener a lost connection would end the process; it fails the statement under way.
  client.on('error', () => undefined);
  const { connection } = client;
  // Before the driver's own listeners: what they write then goes nowhere.
  for (const name of refused)
    connection.once(name, () =>
      connection.stream.destroy(
        new Error(
          'The server asked for the clear-text password: it is not the server that knows it.',
        ),
      ),
    );
  return client;
}

/** Ends a connection at once. In the middle of a COPY the server would not hear a goodbye, nor be answered. */
export function breakOff(client: pg.Client): void {
  client.connection.stream.destroy();
}
