import { problems, rejections } from './de/service.ts';
import { fillText, language } from './t.ts';

/**
 * The service speaks English. In another language its texts are looked up by code, in a list of all codes; a code of a
 * later version is shown in English.
 */
const known = { de: { problems, rejections } } as const;

type Said = { code: string; text: string };

/** Why a request was refused. */
export const sayProblem = (said: Said): string => say('problems', said, {});

/** Why something that a device sent was rejected; `name`: the member concerned. */
export const sayRejection = (said: Said, name: string): string => say('rejections', said, { name });

/** Whether the service's own texts are in the reader's language. */
export const isServiceLanguage = (): boolean => language.value === 'en';

function say(
  list: 'problems' | 'rejections',
  { code, text }: Said,
  values: Record<string, string>,
): string {
  if (language.value === 'en') return text;
  const texts: Record<string, string> = known[language.value][list];
  const found = texts[code];
  return found === undefined ? text : fillText(found, values);
}
