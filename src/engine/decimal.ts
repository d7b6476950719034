/**
 * Rounds to `decimals` places, half away from zero, as the shortest decimal text of the number
 * reads: 2.55 gives 2.6, although the nearest double is a little less than 2.55.
 */
export function roundDecimal(value: number, decimals: number): number {
  if (Number.isInteger(value)) return value;
  const [mantissa = '', exponent = '0'] = String(Math.abs(value)).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  const places = fraction.length - Number(exponent);
  if (places <= decimals) return value;
  const kept = digits.length - (places - decimals);
  if (kept < 0) return 0;
  const up = digits.charCodeAt(kept) >= fiveCode ? 1n : 0n;
  const rounded = Number(`${BigInt(digits.slice(0, kept) || '0') + up}e-${decimals}`);
  if (rounded === 0) return 0;
  return value < 0 ? -rounded : rounded;
}

const fiveCode = '5'.charCodeAt(0);
