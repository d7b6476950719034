import type { Page } from 'playwright-core';
import { expect } from 'vitest';

type Focus = { text: string; isSeen: boolean; isBody: boolean };

/** The focused element: its accessible name, and whether the focus can be seen. */
const focusOf = (page: Page): Promise<Focus> =>
  page.evaluate(`(() => {
    const each = document.activeElement;
    const label = each.labels?.[0]?.textContent ?? '';
    const text = (each.getAttribute('aria-label') ?? '') + label + each.textContent + (each.placeholder ?? '');
    // A choice shows it at the text beside its button.
    const shown = each.matches('.choice input') ? each.nextElementSibling : each;
    const { outlineStyle, outlineWidth } = getComputedStyle(shown);
    const { width, height } = shown.getBoundingClientRect();
    return { text, isBody: each === document.body, isSeen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && width > 8 && height > 8 };
  })()`);

/** Presses Tab until the element with this name has the focus; checks on the way that the focus is always visible. */
export async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = [];
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab');
    const { text, isSeen, isBody } = await focusOf(page);
    // The browser's own bar comes between the last and the first element of a page.
    if (isBody) continue;
    expect([text, isSeen]).toEqual([text, true]);
    if (text.startsWith(name)) return;
    passed.push(text.slice(0, 40));
  }
  throw new Error(`Tab leads to ${passed.join(', ')}, and not to ${name}.`);
}

/** Waits until the element with this name has the focus. */
export async function expectFocus(page: Page, name: string): Promise<void> {
  const named = async () => {
    const { text, isBody } = await focusOf(page);
    return isBody ? 'nothing' : text;
  };
  await expect.poll(named).toContain(name);
}
