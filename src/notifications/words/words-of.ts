import type { Language } from '../../contract/language.ts';
import { german } from '../words.ts';
import { english } from './en.ts';
import type { Words } from './words.ts';

export const words = { en: english, de: german } satisfies Record<Language, Words>;

/** English for any other, and where none is set. */
export function wordsOf(language: string | null): Words {
  return language === 'de' ? words.de : words.en;
}
