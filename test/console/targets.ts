import type { Page } from 'playwright-core';

/** Controls that are less than 44 px high. A link within a sentence may be as high as its line. */
export const findSmallTargets = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const least = 43.5;
    const isInText = (each) => getComputedStyle(each).display === 'inline';
    // All of a row, of a label, is the target.
    const targetOf = (each) =>
      each.matches('.row-link') ? each.closest('tr, li') : each.matches('input') ? (each.closest('label') ?? each) : each;
    return [...document.querySelectorAll('a, button, input, select, textarea, summary')]
      .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !isInText(each))
      .filter((each) => !each.matches('.skip'))
      .map((each) => [each, targetOf(each).getBoundingClientRect().height])
      .filter(([, height]) => height < least)
      .map(([each, height]) => Math.round(height) + ' px: ' + each.outerHTML.slice(0, 120));
  })()`);
