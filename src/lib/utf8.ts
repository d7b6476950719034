import { isUtf8 } from 'node:buffer';

// Apart from json.ts, which the console's page also runs: a browser has no Buffer.

/**
 * The text of JSON bytes, without the byte order mark that some programs put in front (RFC 8259 section 8.1 allows
 * ignoring it). Null if they are not UTF-8: a lenient decoder would turn each invalid byte into U+FFFD, and make
 * different names and passwords equal.
 */
export function decodeUtf8(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return null;
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString('utf8', hasMark ? 3 : 0);
}
