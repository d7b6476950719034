import { rules as de } from '../../text/de/rules.ts';
import { rules as en } from '../../text/en/rules.ts';
import { textsOf } from '../../text/t.ts';

/** A text of the pages of rules, which come with these pages. */
export const text = textsOf(en, de);

/** The text of a key that is made at run time, or the given one if there is none. */
export const tryText = (key: string, otherwise: string): string =>
  key in en ? (text as (key: string) => string)(key) : otherwise;
