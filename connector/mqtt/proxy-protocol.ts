import { BlockList, isIP, type Socket } from 'node:net';
import { readProxiedAddress } from './proxied-address.ts';

/** First bytes of version 2, and of version 1, of the PROXY protocol. */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const textStart = Buffer.from('PROXY ');
/** Version 1 is a line of at most 107 bytes; what version 2 adds to its addresses is small. */
const maxLineBytes = 107;
const maxBytes = 1_024;
const fixedBytes = 16;

/** Whether a peer is one of the proxies (addresses or networks) that may speak for others. */
export function createTrust(proxies: string[]): (socket: Socket) => boolean {
  const list = new BlockList();
  for (const entry of proxies) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return ({ remoteAddress = '' }) =>
    proxies.length > 0 &&
    isIP(remoteAddress) !== 0 &&
    list.check(remoteAddress, isIP(remoteAddress) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * The length of the PROXY protocol header that `bytes` begin with; null while it is incomplete, -1
 * where they begin with something else. Versions 1 and 2, as haproxy's proxy-protocol.txt has them.
 */
export function measureProxyHeader(bytes: Buffer): number | null {
  if (startsLike(bytes, signature)) {
    if (bytes.length < fixedBytes) return null;
    // Version 2, commands LOCAL and PROXY.
    if (bytes.readUInt8(12) !== 0x20 && bytes.readUInt8(12) !== 0x21) return -1;
    const length = fixedBytes + bytes.readUInt16BE(14);
    if (length > maxBytes) return -1;
    return bytes.length < length ? null : length;
  }
  if (!startsLike(bytes, textStart)) return -1;
  const end = bytes.indexOf('\r\n');
  if (end >= 0) return end + 2 <= maxLineBytes ? end + 2 : -1;
  return bytes.length < maxLineBytes ? null : -1;
}

/** As far as either goes. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

/**
 * Takes the header that a proxy puts in front of what its client sends; a connection without one is
 * closed. `enter` is told the client's address, null where the proxy names none, and finds the socket as
 * the client left it.
 */
export function takeProxyHeader(
  socket: Socket,
  timeoutMs: number,
  enter: (address: string | null) => void,
): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  let held: Buffer = Buffer.alloc(0);
  const done = () => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('close', done);
  };
  const onReadable = () => {
    for (;;) {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const length = measureProxyHeader(held);
      if (length === null) continue;
      done();
      if (length < 0) return void socket.destroy();
      if (held.length > length) socket.unshift(held.subarray(length));
      return enter(readProxiedAddress(held.subarray(0, length)));
    }
  };
  socket.on('readable', onReadable).once('close', done);
}
