/** A request with a body: its headers, and the body as on the wire. */
export type SmugglingForm = [name: string, headers: string[], body: string];

/** Requests whose end two readers may see at different places. Each contains this text. */
export function smugglingForms(text: string): SmugglingForm[] {
  const bytes = Buffer.byteLength(text);
  const size = bytes.toString(16);
  const chunked = `${size}\r\n${text}\r\n0\r\n\r\n`;
  const coding = 'Transfer-Encoding: chunked';
  return [
    ['both lengths', [`Content-Length: ${bytes}`, coding], chunked],
    ['both, the other way round', [coding, 'Content-Length: 5'], chunked],
    ['two lengths', [`Content-Length: ${bytes}`, 'Content-Length: 5'], text],
    ['two lengths in one', [`Content-Length: ${bytes}, 5`], text],
    ['a length with a sign', [`Content-Length: +${bytes}`], text],
    ['a length in hexadecimal', [`Content-Length: 0x${size}`], text],
    ['a negative length', ['Content-Length: -1'], text],
    ['an unknown coding', ['Transfer-Encoding: xchunked'], chunked],
    ['chunked and then another', ['Transfer-Encoding: chunked, identity'], chunked],
    ['chunked twice, in two headers', [coding, 'Transfer-Encoding: x'], chunked],
    ['a blank before the colon', ['Transfer-Encoding : chunked'], chunked],
    ['a folded header', ['Transfer-Encoding:', ' chunked', `Content-Length: ${bytes}`], chunked],
    ['a bare line feed in the headers', [`X: y\n${coding}`], chunked],
    ['a control character', ['Transfer-Encoding: \u000bchunked'], chunked],
    ['a size with a prefix', [coding], `0x${chunked}`],
    ['a size with a sign', [coding], `+${chunked}`],
    ['a negative size', [coding], `-${chunked}`],
    ['an endless size', [coding], `${'f'.repeat(40)}\r\n${text}\r\n`],
    ['a chunk that is longer than its size', [coding], `5\r\n${text}\r\n0\r\n\r\n`],
    ['a chunk that ends in a line feed', [coding], chunked.replaceAll('\r\n', '\n')],
    ['no size', [coding], `\r\n${text}\r\n0\r\n\r\n`],
  ];
}
