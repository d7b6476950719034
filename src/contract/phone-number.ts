/**
 * A telephone number as ITU-T E.164 has it, `+` and up to 15 digits, without what people put between
 * them. Null for anything else: a provider may take `client:admin` or `whatsapp:+…` for an address too.
 */
export function normalizePhoneNumber(text: string): string | null {
  const number = text.replaceAll(/[\s().\-/\u2010-\u2015]/g, '');
  return /^\+[1-9]\d{1,14}$/.test(number) ? number : null;
}
