import { t } from '../../text/t.ts';

// The first that fits: every browser calls itself by the names of others, too.
const programs: [RegExp, string][] = [
  [/Edg(e|A|iOS)?\//, 'Edge'],
  [/OPR\/|Opera/, 'Opera'],
  [/SamsungBrowser\//, 'Samsung Internet'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/(Headless)?Chrom(e|ium)\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: [RegExp, string][] = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
];

/** What a person calls the program that signed in: of a browser its name and where it runs. */
export function nameOfProgram(userAgent: string | undefined): string {
  if (userAgent === undefined) return t('account.unknownProgram');
  const find = (list: [RegExp, string][]) => list.find(([sign]) => sign.test(userAgent))?.[1];
  const program = find(programs);
  const system = find(systems);
  // A program says its own name first, such as curl/8.1.
  if (program === undefined) return userAgent.split(/[\s/]/)[0] || t('account.unknownProgram');
  return system === undefined ? program : t('account.programOn', { program, system });
}
