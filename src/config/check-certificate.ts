import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';

type Name = 'TLS_CERT_FILE' | 'TLS_KEY_FILE';

/**
 * What is wrong with the files of a certificate and its key, a line for each; read as they will be
 * used. A file that is not named is reported elsewhere.
 */
export async function checkCertificate(
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<string[]> {
  const problems: string[] = [];
  const read = async <T>(name: Name, path: string | undefined, parse: (text: string) => T) => {
    try {
      return path === undefined ? null : parse(await readFile(path, 'utf8'));
    } catch (error) {
      problems.push(`${name}: ${path} ${whyNot(error as NodeJS.ErrnoException, name)}.`);
      return null;
    }
  };
  const certificate = await read('TLS_CERT_FILE', certFile, (text) => new X509Certificate(text));
  const key = await read('TLS_KEY_FILE', keyFile, (text) => createPrivateKey(text));
  if (certificate && key && !certificate.checkPrivateKey(key))
    problems.push(`TLS_KEY_FILE: ${keyFile} is not the key of the certificate in ${certFile}.`);
  return problems;
}

function whyNot({ code = '', syscall, message }: NodeJS.ErrnoException, name: Name): string {
  if (syscall !== undefined) return `cannot be read (${message})`;
  if (code === 'ERR_MISSING_PASSPHRASE') return 'is encrypted: expected a key without a passphrase';
  const what = name === 'TLS_KEY_FILE' ? 'a private key' : 'a certificate';
  return `is not ${what} in PEM (${message})`;
}
