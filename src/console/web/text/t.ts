import { signal } from '@preact/signals';
import type { en } from './en.ts';

export const languages = ['en', 'de'] as const;
export type Language = (typeof languages)[number];
export type Key = keyof typeof en;

/** Every text of the page in a language, and what the service says in English in that language, by code. */
type Words = { texts: Record<Key, string>; said: Said | null };
type Said = Record<'problems' | 'rejections', Record<string, string>>;

const loaders: Record<Language, () => Promise<Words>> = {
  en: async () => ({ texts: (await import('./en.ts')).en, said: null }),
  de: async () => {
    const { de, problems, rejections } = await import('./de.ts');
    return { texts: de, said: { problems, rejections } };
  },
};

/** A reader loads one language: that of the account; before sign-in, that of the browser. */
const words = new Map<Language, Words>();

export const language = signal<Language>(navigator.language.startsWith('de') ? 'de' : 'en');
let asked = language.value;

/** Loads a language and shows everything in it: before the first text is shown. Throws if it cannot be loaded. */
export async function speak(next: Language): Promise<void> {
  asked = next;
  if (!words.has(next)) words.set(next, await loaders[next]());
  if (asked === next) language.value = next;
}

const textsNow = (): Record<string, string> => words.get(language.value)?.texts ?? {};

/** What the service says, in the reader's language, by code; null: the service speaks it. */
export const saidNow = (): Said | null => words.get(language.value)?.said ?? null;

/** The browser's own variant of that language, which decides between 12 and 24 hours, for instance. */
export function locale(): string {
  const own = navigator.languages.find((each) => each.startsWith(language.value));
  return own ?? (language.value === 'en' ? 'en-GB' : language.value);
}

type Names<S> = S extends `${string}{${infer N}}${infer Rest}` ? N | Names<Rest> : never;
type Values<K extends Key> = Record<Names<(typeof en)[K]>, string | number>;
type Args<K extends Key> = [Names<(typeof en)[K]>] extends [never] ? [] : [Values<K>];

/** A text of the console in the reader's language: `t('alarms.since', { time })`. */
export function t<K extends Key>(key: K, ...[values]: Args<K>): string {
  return fillText(textsNow()[key] ?? key, values ?? {});
}

/** `t` for the texts of a page that is loaded when it is first opened: they come with it. */
export const textsOf =
  <E extends Record<string, string>>(en: E, de: Record<keyof E, string>) =>
  <K extends keyof E>(
    key: K,
    ...[values]: [Names<E[K]>] extends [never] ? [] : [Record<Names<E[K]>, string | number>]
  ): string =>
    fillText({ en, de }[language.value][key], values ?? {});

type Counted = Key extends infer K ? (K extends `${infer Stem}.other` ? Stem : never) : never;

/** The text for a number of things: `count('alarms.firings', 3)`. */
export function count(stem: Counted, number: number): string {
  const rule = new Intl.PluralRules(language.value).select(number) === 'one' ? 'one' : 'other';
  const key = `${stem}.${rule}`;
  return fillText(textsNow()[key] ?? key, { count: formatCount(number) });
}

/** The text of a key that is made at run time, or the given one if there is none. */
export function tryText(key: string, otherwise: string): string {
  return textsNow()[key] ?? otherwise;
}

const formatCount = (number: number) => new Intl.NumberFormat(locale()).format(number);

/** Removes characters that change the direction of the text around them. */
export const plain = (text: string): string => text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, '');

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Isolates a name within a sentence, so that it cannot change the direction of the text beside it. */
function isolate(value: string | number): string {
  const text = plain(String(value));
  return rightToLeft.test(text) ? `\u2068${text}\u2069` : text;
}

/** Replaces names in a text by their values. */
export function fillText(text: string, values: Record<string, string | number>): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : isolate(value);
  });
}
