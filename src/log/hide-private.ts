const patterns: [RegExp, string][] = [
  // User name and password in a URL.
  [/\/\/[^\s/@"]+@/g, '//[redacted]@'],
  // JSON Web Tokens, complete or only their first two parts.
  [/\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?/g, '[token]'],
  // A ticket, which opens a stream, is in its URL.
  [/\bstream_[\w-]{20,}/g, '[ticket]'],
  [/[\w.!#$%&'*+=?^`{|}~-]+@[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}/g, '[e-mail]'],
];

/**
 * A line without secrets and addresses, anywhere in it: errors of libraries and of other servers repeat
 * addresses, tokens and URLs that they were given.
 */
export function hidePrivate(line: string): string {
  if (!['@', 'eyJ', 'stream_'].some((sign) => line.includes(sign))) return line;
  return patterns.reduce((text, [pattern, instead]) => text.replaceAll(pattern, instead), line);
}
