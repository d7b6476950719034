import { isTlsError } from '../lib/servers.ts';
import { DomainError } from '../errors.ts';
import { messageOf } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';
import { isUnavailable, stateOf, states } from './errors.ts';

/** Role and database of the attempt. */
type Asked = { user?: string | undefined; database?: string | undefined };
type Sentence = (asked: { role: string; database: string; name: string; said: string }) => string;

/** Refused logins by SQLSTATE. */
const byCode: Record<string, Sentence> = {
  [states.invalidPassword]: ({ role, name }) =>
    `${name} does not accept role ${role} with this password: correct the name or the password`,
  [states.invalidAuthorization]: ({ role, name, said }) =>
    `${name} does not let role ${role} in (${said}): create the role, or mend the server's pg_hba.conf`,
  [states.invalidCatalogName]: ({ database, name }) =>
    `${name} has no database ${database}: create it, or correct the name at the end of the URL`,
  [states.insufficientPrivilege]: ({ role, database }) =>
    `role ${role} may not connect to database ${database}: GRANT CONNECT ON DATABASE ${database} TO ${role}`,
  [states.tooManyConnections]: ({ name, said }) =>
    `${name} has no connection left (${said}): raise max_connections`,
  [states.cannotConnectNow]: ({ name, said }) =>
    `${name} takes no connections yet (${said}): try again`,
};

/** Refusals of the driver itself. */
const byMessage: [RegExp, Sentence][] = [
  [
    /does not support SSL/,
    ({ name }) => `${name} has TLS turned off: turn it on there, or take sslmode out of the URL`,
  ],
  [
    /client password must be/,
    ({ role, name }) => `${name} wants a password of role ${role}, and the URL has none`,
  ],
  [/timeout expired/, ({ name }) => `${name} did not let anybody in for some seconds: look there`],
];

/** Why a server that is PostgreSQL did not open a session, in words that name what mends it. */
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
    return `the certificate of ${name} is not accepted (${asked.said}): name its authority with sslrootcert=<file>, or its right host`;
  const sentence = Object.hasOwn(byCode, code)
    ? byCode[code]
    : byMessage.find(([pattern]) => pattern.test(error.message))?.[1];
  return sentence?.(asked) ?? `no session at ${name} (${asked.said || error.name})`;
}

/**
 * What ended a start, or a command of the operator's, within a session: as a StartError where the role has no right (42501),
 * and where the connection was lost, which may pass; any other error as it is.
 */
export function explainFailure(error: unknown): unknown {
  if (error instanceof StartError || error instanceof DomainError) return error;
  if (stateOf(error) === states.insufficientPrivilege)
    return new StartError(
      `DATABASE_URL: its role may not do there what the service needs (${messageOf(error)}): let it own the tables, or give it the rights that docs/starting.md lists.`,
      { cause: error },
    );
  if (isUnavailable(error))
    return new StartError(
      `DATABASE_URL: the database went away meanwhile (${oneLine(messageOf(error))}): try again when it is there.`,
      { cause: error, mayPass: true },
    );
  return error;
}

/** As SQL has it, so that what is printed can be pasted. */
export function quote(name = ''): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
