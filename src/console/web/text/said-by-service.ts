import { fillText, saidNow } from './t.ts';

type Said = { code: string; text: string };

/**
 * Why a request was refused. The service speaks English. In another language its texts are looked up by code; a code
 * of a later version is shown in English.
 */
export const sayProblem = (said: Said): string => say('problems', said, {});

/** Why something that a device sent was rejected; `name`: the member concerned. */
export const sayRejection = (said: Said, name: string): string => say('rejections', said, { name });

/** Whether the service's own texts are in the reader's language. */
export const isServiceLanguage = (): boolean => saidNow() === null;

function say(
  list: 'problems' | 'rejections',
  { code, text }: Said,
  values: Record<string, string>,
): string {
  const found = saidNow()?.[list][code];
  return found === undefined ? text : fillText(found, values);
}
