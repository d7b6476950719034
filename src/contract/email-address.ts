import { z } from 'zod';

/** What an unquoted local part is made of (RFC 5322 section 3.2.3, atext). */
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
/** A label of a host's name (RFC 1123 section 2.1), also one in Punycode (RFC 5890). */
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const dotted = (part: string) => `${part}(?:\\.${part})*`;
/** At most 64 octets before the @ (RFC 5321 section 4.5.3.1.1). A host on the own network has one label: root@localhost. */
const address = new RegExp(`^(?=.{1,64}@)${dotted(atom)}@${dotted(label)}$`);

/**
 * An e-mail address that is not quoted. ASCII alone: beyond it letters look alike, and what a browser makes of an
 * international domain is ASCII (`xn--…`).
 */
export const EmailAddress = z
  .email({ pattern: address, error: 'expected an e-mail address of ASCII characters' })
  .max(254);
