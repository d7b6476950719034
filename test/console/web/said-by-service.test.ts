import { afterEach, expect, test } from 'vitest';
import { sayProblem, sayRejection } from '../../../src/console/web/text/said-by-service.ts';
import { language } from '../../../src/console/web/text/t.ts';

afterEach(() => void (language.value = 'en'));

const text = 'As the service says it.';

test("rejections are shown in the service's words, in another language by their reason", () => {
  const say = (code: string) => sayRejection({ code, text }, 'note');
  language.value = 'en';
  expect(say('unknown-member')).toBe(text);
  language.value = 'de';
  expect(say('unknown-member')).toBe('Die Angabe „note“ ist unbekannt und hat keine Wirkung.');
  expect(say('of-a-later-version')).toBe(text);
});

test('and so are refused requests', () => {
  const say = (code: string) => sayProblem({ code, text });
  language.value = 'en';
  expect(say('not-found')).toBe(text);
  language.value = 'de';
  expect(say('not-found')).toBe('Das gibt es nicht oder nicht mehr.');
  expect(say('')).toBe(text);
});
