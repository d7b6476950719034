import pg from 'pg';
import type { Connection, PoolClient, Query } from 'pg';
import { DomainError } from '../errors.ts';

/** Members of the driver's connection that its types omit. */
type CopyConnection = Connection & {
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
};

/** Sends a query object that writes itself to the connection; resolves when the server has executed it. */
function submit(client: PoolClient, query: Query): Promise<void> {
  return new Promise((resolve, reject) => {
    const callback = (error: Error | null) => (error ? reject(error) : resolve());
    client.query(Object.assign(query, { callback }));
  });
}

/**
 * Sends everything from one turn of the event loop in one piece. Each separate write is a system call here and wakes
 * the server there, which for a batch of messages costs as much as its rows.
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
 * Sends the rows right after the statement. The driver would wait until the server asks for them, and on a pipelined
 * connection the server would meanwhile take the next statements for rows. A server that refuses the statement discards
 * what follows it (PostgreSQL's protocol, "COPY Operations").
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

/** Gives each row as the server sends it. The driver reads them as it reads answers, so they cannot be held back. */
class CopyOut extends pg.Query {
  readonly handleCopyData: (message: { chunk: Buffer }) => void;

  constructor(text: string, onRow: (row: Buffer) => void) {
    super(text);
    this.handleCopyData = ({ chunk }) => onRow(chunk);
  }
}

/** Runs `COPY … TO STDOUT`; resolves after the last row. A row's bytes are valid only during the call. */
export function copyOut(
  client: PoolClient,
  statement: string,
  onRow: (row: Buffer) => void,
): Promise<void> {
  return submit(client, new CopyOut(statement, onRow));
}

/**
 * The function in which PostgreSQL waits for a synchronous standby (its source, syncrep.c). Notices name it in every
 * language.
 */
const standbyWait = 'SyncRepWaitForLSN';

/**
 * Fails a commit whose wait for the synchronous standby was cancelled. The server reports that in a warning only, and
 * answers as for any other commit, but the transaction is on the primary alone, and a failover would lose it. The
 * connection is given up too, as after an error of its socket.
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
 * A client that authenticates with SCRAM only. The driver has no setting for that, and would send the password to any
 * program that took over the port and asked for it. Here, such a request ends the connection.
 */
export function createScramClient(config: pg.ClientConfig): pg.Client {
  const client = new pg.Client(config);
  // Without a listener a lost connection would end the process. As it is, it fails the statement under way.
  client.on('error', () => undefined);
  const { connection } = client;
  // Runs before the driver's own listeners, so what they write goes nowhere.
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

/** Ends a connection at once. In the middle of a COPY the server would not notice a regular end, nor answer it. */
export function breakOff(client: pg.Client): void {
  client.connection.stream.destroy();
}
