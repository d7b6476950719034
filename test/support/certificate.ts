import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findProgram } from './program.ts';

/** `describe.skipIf(!hasOpenssl)`: whether this machine can make certificates. */
export const hasOpenssl = findProgram('openssl') !== null;

/** A self-signed certificate for `name` and 127.0.0.1, valid for two days. */
export async function makeCertificate(
  name: string,
  files: { certFile: string; keyFile: string },
): Promise<void> {
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const out = ['-keyout', files.keyFile, '-out', files.certFile];
  await promisify(execFile)('openssl', ['req', '-x509', '-days', '2', ...key, ...subject, ...out]);
}
