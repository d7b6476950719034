import type { Config } from '../config/config.ts';

/** Where links in mails lead. */
export type PublicUrl = {
  /** Without a slash at its end. */
  get(): string;
  /** HTTP listens on this port: known only then where any free one was asked for. */
  listensOn(port: number): void;
};

export function createPublicUrl({
  publicUrl,
  publicHost,
  httpListen,
}: Pick<Config, 'publicUrl' | 'publicHost' | 'httpListen'>): PublicUrl {
  let { port } = httpListen;
  const host = publicHost.includes(':') ? `[${publicHost}]` : publicHost;
  return {
    get: () => publicUrl ?? `http://${host}:${port}`,
    listensOn: (listening) => void (port = listening),
  };
}
