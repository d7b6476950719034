import type { BrowserContext } from 'playwright-core';
import { bundle } from '../../src/console/build/bundle.ts';

const plainLetters = 'aceinouyACEINOUY';
const accented = 'áçéíñóúýÁÇÉÍÑÓÚÝ';

/** A text as in a language with longer words: two thirds longer, and distinguishable from text in the code. */
function pseudo(text: string): string {
  const parts = text.split(/(\{\w+\})/);
  const changed = parts.map((part) =>
    part.startsWith('{') ? part : part.replaceAll(/\w/g, (letter) => accent(letter)),
  );
  const more = 'öööööööö '.repeat(1 + Math.floor(text.length / 12)).slice(0, text.length * 0.67);
  return `⟦${changed.join('')} ${more.trimEnd()}⟧`;
}

const accent = (letter: string): string => accented[plainLetters.indexOf(letter)] ?? letter;

/** Makes the pages of a context show the pseudo-language instead of English. */
export async function speakPseudo(context: BrowserContext): Promise<void> {
  const files = await bundle([
    {
      name: 'pseudo-language',
      async transform(_code, id) {
        if (!/\/text\/en\/[\w-]+\.ts$/.test(id)) return null;
        const texts = (await import(id)) as Record<string, Record<string, string>>;
        const changed = Object.entries(texts).map(([name, keys]) => {
          const entries = Object.entries(keys).map(([key, text]) => [key, pseudo(text)]);
          return `export const ${name} = ${JSON.stringify(Object.fromEntries(entries))};`;
        });
        return { code: changed.join('\n'), moduleType: 'js' };
      },
    },
  ]);
  const page = files.find(({ name }) => name === 'index.html');
  await context.route('**/console/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/console/session') return route.fallback();
    const name = pathname.split('/assets/')[1];
    const file = name === undefined ? page : files.find((each) => each.name === name);
    if (!file) return route.abort();
    return route.fulfill({ contentType: file.type, body: file.content });
  });
}
