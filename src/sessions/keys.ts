import { hkdfSync } from 'node:crypto';

/** Keys for one use: the first signs, all of them verify (so that a secret can be changed). */
export type Keys = [current: Buffer, ...previous: Buffer[]];

/** HKDF-SHA256 (RFC 5869): one key a use from each secret; none tells anything of another. */
export function deriveKeys(secrets: { current: string; previous?: string }, use: string): Keys {
  const derive = (secret: string) =>
    Buffer.from(hkdfSync('sha256', secret, '', `sensorium ${use}`, 32));
  return secrets.previous === undefined
    ? [derive(secrets.current)]
    : [derive(secrets.current), derive(secrets.previous)];
}
