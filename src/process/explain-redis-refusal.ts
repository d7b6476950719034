import { isCertificateError, isTlsError } from '../lib/servers.ts';

/** What Redis answers to a client that it will not serve until something is changed. */
const refusals: [RegExp, (name: string, said: string) => string][] = [
  [
    /^NOAUTH/,
    (name) =>
      `${name} wants a password: write redis://:password@host:port (with a user: user:password@)`,
  ],
  [
    /^WRONGPASS|invalid password|^ERR AUTH/,
    (name) => `${name} does not accept this user or password: correct them`,
  ],
  [
    /^NOPERM/,
    (name, said) =>
      `${name} does not let this user do what is needed (${said}): its ACL must allow the keys and channels sensorium:*`,
  ],
  [/^READONLY/, (name) => `${name} is a replica, which only reads: name the primary`],
  [
    /^DENIED/,
    (name) => `${name} is in protected mode and answers its own machine only: give it a password`,
  ],
  [
    /^(MOVED|CROSSSLOT|CLUSTERDOWN)|SELECT is not allowed/,
    (name) => `${name} belongs to a Redis Cluster: expected a single Redis or Valkey`,
  ],
  [
    /DB index|invalid DB/i,
    (name) => `${name} has no database of the number at the end of the URL: correct it`,
  ],
  [
    /unknown command/i,
    (name, said) =>
      `${name} is no Redis that keeps data, perhaps a Sentinel (${said}): name the Redis itself`,
  ],
];

/** What to mend where Redis refuses for good; null where it may serve later. */
export function findRefusal(error: Error, name: string): string | null {
  const said = error.message.replaceAll(/\s+/g, ' ');
  const found = refusals.find(([pattern]) => pattern.test(error.message));
  return found?.[1](name, said) ?? whyNoTls(error, name);
}

/** The same for a handshake that failed; null where it was something else. */
export function whyNoTls(error: Error, name: string): string | null {
  if (!isTlsError(error)) return null;
  if (!isCertificateError(error))
    return `${name} does not answer in TLS: write redis://, or name its TLS port`;
  return `the certificate of ${name} is not accepted (${error.message}): name its authority with NODE_EXTRA_CA_CERTS, or its right host`;
}
