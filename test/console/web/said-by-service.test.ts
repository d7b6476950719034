import { expect, test } from 'vitest';
import { sayProblem, sayRejection } from '../../../src/console/web/text/said-by-service.ts';
import { speak } from '../../../src/console/web/text/t.ts';

const text = 'As the service says it.';

test("rejections are shown in the service's words, in another language by their reason", async () => {
  const say = (code: string) => sayRejection({ code, text }, 'note');
  await speak('en');
  expect(say('unknown-member')).toBe(text);
  await speak('de');
  expect(say('unknown-member')).toBe('Die Angabe „note“ ist unbekannt und hat keine Wirkung.');
  expect(say('of-a-later-version')).toBe(text);
});

test('and so are refused requests', async () => {
  const say = (code: string) => sayProblem({ code, text });
  await speak('en');
  expect(say('not-found')).toBe(text);
  await speak('de');
  expect(say('not-found')).toBe('Das gibt es nicht oder nicht mehr.');
  expect(say('')).toBe(text);
});
