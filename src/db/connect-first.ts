import pg from 'pg';
import {
  ask,
  isPostgres,
  nameOfPlace,
  recognise,
  type ServerAnswer,
  type ServerPlace,
  sslRequest,
  whyUnreachable,
} from '../lib/servers.ts';
import { StartError } from '../start-error.ts';
import { isUnavailable } from './errors.ts';
import { whyRefused } from './why-refused.ts';
import { codeOf, messageOf } from '../lib/thrown.ts';
import { optionsOf, sessionFormats } from './types.ts';

/** Time for all attempts of one start: an error must be reported within 10 s. */
const timeoutMs = 4_500;
/** The least time for the second attempt. */
const leastMs = 1_500;

/**
 * The first connection to a database. A wrong address, or a server that is not usable, is thrown as a
 * StartError of one line, which never contains the password; one that may be there later, as one that `mayPass`.
 */
export async function connectFirst(connectionString: string): Promise<pg.Client> {
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const startedMs = performance.now();
  await askWhoIsThere(connectionString);
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const leftMs = timeoutMs - (performance.now() - startedMs);
  const client = makeClient(connectionString, Math.max(leastMs, Math.round(leftMs)));
  // A lost connection fails the query under way; without a listener it would end the process too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    const why = whyRefused(error, client, nameOfPlace(placeOf(client)));
    throw wrong(why, { cause: error, mayPass: isUnavailable(error) });
  }
}

/** Before the driver connects: its errors for other protocols depend on what the other side sends. */
async function askWhoIsThere(connectionString: string): Promise<void> {
  const client = makeClient(connectionString, timeoutMs);
  // With TLS from the first byte nothing can be asked without it.
  if ('sslNegotiation' in client && client.sslNegotiation === 'direct') return;
  const place = placeOf(client);
  const answer = await ask(place, sslRequest, { timeoutMs: timeoutMs - leastMs });
  if (answer.kind === 'failed') {
    const { error } = answer;
    const what = `${whyUnreachable(error, place)}: start the database, or correct host and port`;
    // All but a socket that this user may not use. A name that nobody knows may be one of a container that is not there yet.
    throw wrong(what, { cause: error, mayPass: codeOf(error) !== 'EACCES' });
  }
  if (!isPostgres(answer)) {
    const what = whatIsThere(answer, nameOfPlace(place));
    // What says nothing may be a server that hangs, or a proxy without a server behind it.
    const mayPass = answer.kind !== 'said';
    throw wrong(`expected PostgreSQL, but ${what}: correct host and port`, { mayPass });
  }
}

function whatIsThere(answer: ServerAnswer, name: string): string {
  switch (answer.kind) {
    case 'said':
      return `at ${name} is ${recognise(answer.bytes)}`;
    case 'closed':
      return `${name} closes the connection without a word`;
    case 'silent':
    case 'failed':
      return `${name} accepts the connection and says nothing`;
  }
}

function makeClient(connectionString: string, connectionTimeoutMillis: number): pg.Client {
  try {
    const options = optionsOf(sessionFormats);
    return new pg.Client({ connectionString, connectionTimeoutMillis, options });
  } catch (error) {
    // Such as an sslrootcert file that is missing.
    throw wrong(`it cannot be used (${messageOf(error)})`, { cause: error });
  }
}

function placeOf({ host, port }: pg.Client): ServerPlace {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}

function wrong(what: string, options?: { cause?: unknown; mayPass?: boolean }): StartError {
  return new StartError(`DATABASE_URL: ${what}.`, options);
}
