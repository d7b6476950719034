/** Hosts that ignore full stops in front of the `@`, and what each is counted as (support.google.com/mail/answer/7436150). */
const dotless: Record<string, string> = { 'gmail.com': 'gmail.com', 'googlemail.com': 'gmail.com' };

/**
 * What mails to an e-mail address are counted by, where anybody may have them sent. Most servers put what is sent to
 * "name+anything@host" into one mailbox (RFC 5233 calls that subaddressing), and some ignore full stops.
 */
export function mailboxOf(address: string): string {
  const normal = address.toLowerCase();
  const at = normal.lastIndexOf('@');
  const name = normal.slice(0, Math.max(0, at)).replace(/\+.*$/, '');
  const host = normal.slice(at + 1);
  const same = dotless[host];
  return same === undefined ? `${name}@${host}` : `${name.replaceAll('.', '')}@${same}`;
}
