import type { Page } from 'playwright-core';

/** Elements in the page that our pages never contain. */
export const findInjected = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const strange = [...document.querySelectorAll('main :is(img, script, iframe, object, embed, style, form[action])')];
    const links = [...document.querySelectorAll('a[href], area[href]')]
      .filter((each) => !/^(\\/console\\/|\\/docs|#)/.test(each.getAttribute('href')));
    const handlers = [...document.querySelectorAll('*')]
      .filter((each) => [...each.attributes].some(({ name }) => name.startsWith('on')));
    const tall = document.documentElement.scrollHeight;
    return [...strange, ...links, ...handlers].map((each) => each.outerHTML.slice(0, 120))
      .concat(tall > 9000 ? ['The page is ' + tall + ' px high.'] : []);
  })()`);
