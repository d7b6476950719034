import pg from 'pg';

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
        new Error('The server asked for the password itself: it is not the one that knows it.'),
      ),
    );
  return client;
}
