/**
 * A telephone number as ITU-T E.164 has it, `+` and up to 15 digits, without what people put between
 * them. A `(0)` behind the country code is dialled within the country alone, and dropped. Null for anything else: a
 * provider may take `client:admin` or `whatsapp:+…` for an address too.
 */
export function normalizePhoneNumber(text: string): string | null {
  const number = withoutTrunkZero(text).replaceAll(/[\s().\-/\u2010-\u2015]/g, '');
  return /^\+[1-9]\d{1,14}$/.test(number) ? number : null;
}

/** Italy, San Marino and the Vatican: their numbers have the zero from abroad too (ITU-T E.164, national plans). */
const keepsZero = /^\+\s*(39|378|379)$/;

/**
 * `+49 (0)171 …` as ITU-T E.123 section 7.3 forbids, and people write all the same. Elsewhere in a number `(0)` says
 * nothing that can be known, and is left as what no number has.
 */
function withoutTrunkZero(text: string): string {
  const [before = '', after, ...more] = text.split(/\(\s*0\s*\)/);
  if (after === undefined) return text;
  const code = before.trim();
  if (more.length > 0 || !/^\+\s*[1-9]\d{0,2}$/.test(code)) return '';
  return keepsZero.test(code) ? `${code}0${after}` : `${code}${after}`;
}
