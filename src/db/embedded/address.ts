/** Where a server listens: at a Unix socket in a directory, or (null) at a port of 127.0.0.1. */
export type ServerAddress = { socketDir: string | null; port: number };

/** A role of the database, with what proves that somebody may use it. */
export type RoleLogin = { role: string; password: string };

/** A socket's directory takes the host's place in the URL, encoded, as libpq has it too. */
export function connectionStringOf(
  { socketDir, port }: ServerAddress,
  { role, password }: RoleLogin,
  database: string,
): string {
  const host = socketDir === null ? '127.0.0.1' : encodeURIComponent(socketDir);
  return `postgresql://${role}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
}
