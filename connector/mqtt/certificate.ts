import { X509Certificate } from 'node:crypto';
import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Log } from '../options.ts';

/** Files that change together are read once, when both have been quiet this long. */
const settleMs = 200;

export type CertificateFiles = { certFile: string; keyFile: string };

export type WatchedCertificate = {
  /** When the certificate that is in use ends, ms since 1970. */
  expiresTs: () => number;
  /** Reads both now: a network file system may not tell of a change. Never rejects. */
  reload: () => Promise<void>;
  close: () => void;
};

/**
 * Reads a certificate and its key, and again whenever their directories change (certificates are
 * replaced by renaming files or links). What cannot be used is logged, and the old one stays.
 */
export async function watchCertificate(
  { certFile, keyFile }: CertificateFiles,
  log: Log,
  use: (context: SecureContextOptions) => void,
): Promise<WatchedCertificate> {
  let current = await read();
  use(current);
  let timer: NodeJS.Timeout | undefined;

  async function read() {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { cert, key };
  }

  async function reload(): Promise<void> {
    try {
      const next = await read();
      if (next.cert === current.cert && next.key === current.key) return;
      createSecureContext(next);
      use(next);
      current = next;
      log.info({ event: 'certificate.reloaded', certFile }, 'The certificate was read again.');
    } catch (error) {
      log.error(
        { event: 'certificate.refused', err: error, certFile },
        'The new certificate cannot be used; the old one stays.',
      );
    }
  }

  const directories = new Set([dirname(certFile), dirname(keyFile)]);
  const watchers = [...directories].map((directory) =>
    watch(directory, { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => void reload(), settleMs);
    }),
  );
  return {
    expiresTs: () => new X509Certificate(current.cert).validToDate.getTime(),
    reload,
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}
