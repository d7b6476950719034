import { problems, rejections } from './de/service.ts';
import { fillText, language } from './t.ts';

/**
 * The service speaks English: what it says is shown so, and in another language by its code, from a list that
 * has all codes. What has a code of a later version is shown as it was said.
 */
const known = { de: { problems, rejections } } as const;

type Said = { code: string; text: string };

/** Why a request was refused. */
export const sayProblem = (said: Said): string => say('problems', said, {});

/** Why something that a device sent was refused; `name`: the member that it is about. */
export const sayRejection = (said: Said, name: string): string => say('rejections', said, { name });

/** Whether what the service says is in its reader's language. */
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
