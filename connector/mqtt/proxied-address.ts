import { isIP } from 'node:net';

const version2Addresses = 16;

/**
 * The client's address in a whole PROXY protocol header; null where the proxy speaks for itself or
 * names none (LOCAL, UNKNOWN, a Unix socket). haproxy's proxy-protocol.txt, sections 2.1 and 2.2.
 */
export function readProxiedAddress(header: Buffer): string | null {
  if (header[0] !== 0x0d) return readLine(header.toString('latin1'));
  const [command, family] = [header[12], header[13]];
  if (command !== 0x21 || family === undefined) return null;
  const addresses = header.subarray(version2Addresses);
  if (family >> 4 === 1 && addresses.length >= 12) return [...addresses.subarray(0, 4)].join('.');
  if (family >> 4 === 2 && addresses.length >= 36) return ipv6(addresses);
  return null;
}

function readLine(line: string): string | null {
  const address = /^PROXY TCP[46] (\S+) /.exec(line)?.[1] ?? '';
  return isIP(address) === 0 ? null : plainAddress(address);
}

function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(n * 2).toString(16));
  const mapped = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  return mapped ? [...bytes.subarray(12, 16)].join('.') : groups.join(':');
}

/** An IPv4 address as it arrives on a socket for both kinds: without its IPv6 prefix. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}
