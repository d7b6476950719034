/** What a line holds where something in it was left out. */
type Hidden = (line: string) => string;

/** Anything of these cannot stand in a line that has none of them: most lines are done with one look. */
const signs = ['@', 'eyJ', 'stream_', 'sens_', 'whsec_'];

/**
 * Each of these reads a line once, whatever stands in it: strangers choose parts of what is logged, so
 * no pattern may begin again inside of what it has already read (no overlap of where it can begin).
 */
const hiders: Hidden[] = [
  // User name and password in a URL.
  (line) => line.replaceAll(/\/\/[^\s/@"]+@/g, '//[redacted]@'),
  hideTokens,
  // A ticket that opens a stream is in its URL; keys and webhook secrets, where a library repeats a header.
  (line) => line.replaceAll(/stream_[\w-]{20,}/g, '[ticket]'),
  (line) => line.replaceAll(/sens_[\w-]{20,}/g, '[key]'),
  (line) => line.replaceAll(/whsec_[\w+/=-]{20,}/g, '[secret]'),
  hideAddresses,
];

/**
 * A line of JSON without secrets and e-mail addresses, anywhere in it: errors of libraries and of other
 * servers repeat addresses, tokens and URLs that they were given. Takes time that grows with the line's
 * length and not faster; what it gives is JSON if what it was given is.
 */
export function hidePrivate(line: string): string {
  if (!signs.some((sign) => line.includes(sign))) return line;
  return hiders.reduce((text, hide) => hide(text), line);
}

/** JSON Web Tokens, complete or only their first two parts (RFC 7519 section 3). */
function hideTokens(line: string): string {
  if (!line.includes('eyJ')) return line;
  return line.replaceAll(/[\w.-]+/g, (run) => {
    const begins = run.indexOf('eyJ');
    const hasParts = begins !== -1 && run.includes('.', begins);
    return hasParts ? `${run.slice(0, begins)}[token]` : run;
  });
}

// Without `/`, which RFC 5322 allows: paths end there, and `node_modules/@koa/router` is no address.
const local = charactersOf("abcdefghijklmnopqrstuvwxyz0123456789_.!#$%&'*+=?^`{|}~-");
const domain = charactersOf('abcdefghijklmnopqrstuvwxyz0123456789-.');

/**
 * From each `@` backwards and forwards: neither way leads past another one, so that every character is
 * looked at twice at most.
 */
function hideAddresses(line: string): string {
  const parts: string[] = [];
  let kept = 0;
  for (let at = line.indexOf('@'); at !== -1; at = line.indexOf('@', at + 1)) {
    let from = at;
    while (from > kept && local.has(line.charCodeAt(from - 1))) from -= 1;
    from = behindEscape(line, from, at);
    let to = at + 1;
    while (to < line.length && domain.has(line.charCodeAt(to))) to += 1;
    // A full stop or hyphen at the end belongs to the sentence.
    while (to > at + 1 && /[.-]/.test(line.charAt(to - 1))) to -= 1;
    const host = line.slice(at + 1, to);
    // Whose last label is a name: `koa@3.0.0` is a version.
    if (from === at || !/^[A-Za-z]/.test(host.slice(host.lastIndexOf('.') + 1))) continue;
    parts.push(line.slice(kept, from), '[e-mail]');
    kept = to;
  }
  return parts.length === 0 ? line : parts.join('') + line.slice(kept);
}

/** The first characters of what is hidden may be the end of an escape, which stays: `\n`, `\u001b`. */
function behindEscape(line: string, from: number, at: number): number {
  let backslashes = 0;
  while (backslashes < from && line.charAt(from - 1 - backslashes) === '\\') backslashes += 1;
  if (backslashes % 2 === 0) return from;
  return Math.min(at, from + (line.charAt(from) === 'u' ? 5 : 1));
}

function charactersOf(letters: string): ReadonlySet<number> {
  return new Set(Buffer.from(letters + letters.toUpperCase(), 'latin1'));
}
