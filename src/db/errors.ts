import { DomainError } from '../errors.ts';
import { isTlsError } from '../lib/servers.ts';
import { codeOf, messageOf } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';

/**
 * What a database error calls for:
 * - `unavailable`: the server, or the network to it, is away for now. Try later, on another connection.
 * - `cancelled`: the server gave up this statement because it took too long or waited too long for a lock. Other
 *   statements work. A repetition may end the same way, so count repetitions, and try less at once.
 * - `serialization`: a conflict with another transaction. Run the same again soon.
 * - `unique`: one of its rows is stored already.
 * - `unstorable`: a value or a row that the database will never accept, at least beside what is stored.
 * - `schema`: the tables are not those that this program knows, or belong to another program.
 * - `fault`: a bug in this program; anything that is not listed.
 */
export type DatabaseErrorKind =
  'unavailable' | 'cancelled' | 'serialization' | 'unique' | 'unstorable' | 'schema' | 'fault';

/** Kinds by SQLSTATE or its beginning (PostgreSQL's appendix A). The first match counts. */
const kindsByState: readonly [string, DatabaseErrorKind][] = [
  ['08', 'unavailable'], // connection_exception
  ['25006', 'unavailable'], // read_only_sql_transaction: the server became a standby
  ['53', 'unavailable'], // insufficient_resources: disk, memory, connections
  ['55P03', 'cancelled'], // lock_not_available
  ['57014', 'cancelled'], // query_canceled: a statement's timeout
  ['57P0', 'unavailable'], // shutdown, crash, start-up
  ['58', 'unavailable'], // system_error
  ['25P02', 'serialization'], // in_failed_sql_transaction: the original error was not seen
  ['40001', 'serialization'], // serialization_failure
  ['40P01', 'serialization'], // deadlock_detected
  ['23505', 'unique'], // unique_violation
  ['22', 'unstorable'], // data_exception
  ['23', 'unstorable'], // integrity_constraint_violation
  ['54', 'unstorable'], // program_limit_exceeded: a row or an index entry is too large
  ['P0001', 'unstorable'], // raise_exception: a trigger of the operator
  ['42', 'schema'], // syntax_error_or_access_rule_violation, undefined_table
];

/** Codes of Node's sockets and resolver. */
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** The driver's errors without a code for a connection that is lost or cannot be opened; test/contracts checks them. */
const driverTexts: ReadonlySet<string> = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
]);

export function kindOf(error: unknown): DatabaseErrorKind {
  if (!(error instanceof Error)) return 'fault';
  if (error instanceof DomainError) return kindOfDomain(error);
  // For any reason: a Unix socket does not exist (ENOENT) while its server restarts.
  if ('syscall' in error && error.syscall === 'connect') return 'unavailable';
  const code = stateOf(error);
  if (code === '') return driverTexts.has(error.message) ? 'unavailable' : 'fault';
  if (unreachable.has(code)) return 'unavailable';
  return kindsByState.find(([state]) => code.startsWith(state))?.[1] ?? 'fault';
}

/** `openDatabase` throws `unavailable` for both kinds, because callers treat them alike. */
function kindOfDomain({ code, cause }: DomainError): DatabaseErrorKind {
  if (code !== 'unavailable') return 'fault';
  return cause !== undefined && kindOf(cause) === 'cancelled' ? 'cancelled' : 'unavailable';
}

export function isUnavailable(error: unknown): boolean {
  return kindOf(error) === 'unavailable';
}

/** The SQLSTATE, or the code of a socket's error; empty if there is none. */
export function stateOf(error: unknown): string {
  return codeOf(error);
}

/** SQLSTATEs that callers handle by name. */
export const states = {
  cannotConnectNow: '57P03',
  deadlockDetected: '40P01',
  diskFull: '53100',
  foreignKeyViolation: '23503',
  inFailedTransaction: '25P02',
  insufficientPrivilege: '42501',
  internalError: 'XX000',
  invalidAuthorization: '28000',
  invalidCatalogName: '3D000',
  invalidPassword: '28P01',
  lockNotAvailable: '55P03',
  queryCanceled: '57014',
  readOnly: '25006',
  tooManyConnections: '53300',
  undefinedTable: '42P01',
} as const;

/** The role and database of the attempt. */
type Asked = { user?: string | undefined; database?: string | undefined };
type Sentence = (asked: { role: string; database: string; name: string; said: string }) => string;

/** Refused logins, by SQLSTATE. */
const byCode: Record<string, Sentence> = {
  [states.invalidPassword]: ({ role, name }) =>
    `${name} does not accept this password for role ${role}: correct the role name or the password`,
  [states.invalidAuthorization]: ({ role, name, said }) =>
    `${name} does not admit role ${role} (${said}): create the role, or correct the server's ` +
    'pg_hba.conf',
  [states.invalidCatalogName]: ({ database, name }) =>
    `${name} has no database ${database}: create it, or correct the name at the end of the URL`,
  [states.insufficientPrivilege]: ({ role, database }) =>
    `role ${role} may not connect to database ${database}: run GRANT CONNECT ON DATABASE ` +
    `${database} TO ${role}`,
  [states.tooManyConnections]: ({ name, said }) =>
    `${name} has no free connection (${said}): raise max_connections`,
  [states.cannotConnectNow]: ({ name, said }) =>
    `${name} does not accept connections yet (${said}): try again`,
};

/** Errors of the driver itself. */
const byMessage: [RegExp, Sentence][] = [
  [
    /does not support SSL/,
    ({ name }) => `${name} has TLS disabled: enable it there, or remove sslmode from the URL`,
  ],
  [
    /client password must be/,
    ({ role, name }) => `${name} requires a password for role ${role}, but the URL has none`,
  ],
  [
    /timeout expired/,
    ({ name }) => `${name} did not open a session within some seconds: check the server`,
  ],
];

/** Why a PostgreSQL server did not open a session, and what to do about it. */
export function whyRefused(error: unknown, { user, database }: Asked, name: string): string {
  if (!(error instanceof Error)) return `no session at ${name} (${String(error)})`;
  const asked = {
    role: quote(user),
    database: quote(database),
    name,
    said: oneLine(error.message),
  };
  const code = stateOf(error);
  if (isTlsError(error))
    return (
      `the certificate of ${name} is not accepted (${asked.said}): set sslrootcert=<file> to its ` +
      'authority, or use the host name in the certificate'
    );
  const sentence = Object.hasOwn(byCode, code)
    ? byCode[code]
    : byMessage.find(([pattern]) => pattern.test(error.message))?.[1];
  return sentence?.(asked) ?? `no session at ${name} (${asked.said || error.name})`;
}

/**
 * Explains the error that ended a start or an operator's command within a session. It becomes a StartError if the role
 * lacks a right (42501), or if the connection was lost, which may pass. Any other error is returned unchanged.
 */
export function explainFailure(error: unknown): unknown {
  if (error instanceof StartError || error instanceof DomainError) return error;
  if (stateOf(error) === states.insufficientPrivilege)
    return new StartError(
      `DATABASE_URL: its role lacks a right that the service needs (${messageOf(error)}): make ` +
        'it the owner of the tables, or grant it the rights listed in docs/starting.md.',
      { cause: error },
    );
  if (isUnavailable(error))
    return new StartError(
      `DATABASE_URL: the connection to the database was lost (${oneLine(messageOf(error))}): ` +
        'try again when the database is back.',
      { cause: error, mayPass: true },
    );
  return error;
}

/** Quoted as in SQL, so that printed statements can be pasted. */
export function quote(name = ''): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
