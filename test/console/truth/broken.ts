import type { Page } from 'playwright-core';

/** Words of names, headings and values that are broken over two lines, and values that are cut off. */
export const findBroken = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const broken = [...document.querySelectorAll('main :is(h1, h2, .row-link, .value, .alarm-title strong, .tab, .chip)')]
      .filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.clientWidth !== 1)
      .flatMap((each) => {
        const texts = document.createTreeWalker(each, NodeFilter.SHOW_TEXT);
        const found = [];
        for (let node = texts.nextNode(); node; node = texts.nextNode())
          for (const { 0: word, index } of node.data.matchAll(/[^\\s-]+/g)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            if (tops.size > 1 && word.length < 16) found.push('Broken: ' + word);
          }
        return found;
      });
    const cut = [...document.querySelectorAll('main :is(.fleet-value, .value)')]
      .filter((each) => {
        const box = each.closest('td, .card')?.getBoundingClientRect();
        return box && box.width > 0 && each.getBoundingClientRect().right > box.right + 1;
      })
      .map((each) => 'Cut off: ' + each.textContent);
    return [...broken, ...cut];
  })()`);
