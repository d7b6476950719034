/**
 * A number as people type it, in their language: `10,5` is ten and a half in German, and so is `10.5` where the point
 * cannot stand between thousands. Null if it is no number, or one that may mean two things, as `1,5.3` does.
 */
export function parseNumber(text: string, locale: string): number | null {
  // All kinds of minus that keyboards and spreadsheets insert, and of space between thousands.
  const typed = text
    .trim()
    .replace(/^[\u2010-\u2015\u2212]/, '-')
    .replace(/^([+-])\s+/, '$1')
    .replaceAll(/(?<=\d)[\s'’](?=\d{3}(?!\d))/g, '');
  const plain = plainOf(typed, decimalOf(locale));
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(plain)) return null;
  const number = Number(plain);
  return Number.isFinite(number) ? number : null;
}

/** With a point before the decimals, and nothing between thousands. */
function plainOf(text: string, decimal: '.' | ','): string {
  const group = decimal === '.' ? ',' : '.';
  const groups = new RegExp(`^[+-]?[1-9]\\d{0,2}(?:\\${group}\\d{3})+(?:\\${decimal}|$)`);
  if (groups.test(text)) return text.replaceAll(group, '').replace(decimal, '.');
  // The other sign can only be that of the decimals here.
  return text.includes(decimal) ? text.replace(decimal, '.') : text.replace(group, '.');
}

const decimalOf = (locale: string): '.' | ',' =>
  new Intl.NumberFormat(locale).format(1.5).includes(',') ? ',' : '.';

/** A number for a field: as `parseNumber` reads it, with all its digits. */
export const typeNumber = (value: number, locale: string): string => {
  // Intl would round, and write out what has an exponent.
  const text = String(value);
  return decimalOf(locale) === ',' ? text.replace('.', ',') : text;
};
