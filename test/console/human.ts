import type { Locator, Page } from 'playwright-core';

/** Reading silently, typing on a telephone or with few fingers, and moving to a place and pressing it. */
const pace = { wordsReadPerMinute: 220, wordsTypedPerMinute: 40, clickMs: 1_200 };
/** A typed word, as typists count. */
const lettersPerWord = 5;

export type Human = {
  /** Reads what is new on the screen. */
  read: () => Promise<void>;
  click: (place: Locator) => Promise<void>;
  /** Into a field that has the focus already, or is clicked first. */
  type: (field: Locator, text: string) => Promise<void>;
  /** Something beside the page, such as going to the terminal, pasting, pressing Enter. */
  act: (times: number) => void;
  /** Waits for the page, and reads what came. */
  waitFor: (place: Locator) => Promise<void>;
  /** How long it took: what a person needs, and what the page needed. */
  figure: () => { seconds: number; clicks: number; words: number; letters: number };
};

/**
 * Somebody who has never seen the page and reads all of it, at a pace that is known. Nobody is waited for:
 * the time of reading, typing and clicking is added to that which the page itself took.
 */
export function createHuman(page: Page): Human {
  const seen = new Set<string>();
  let [clicks, words, letters, pageMs] = [0, 0, 0, 0];
  const timed = async (work: Promise<unknown>) => {
    const startedMs = performance.now();
    await work;
    pageMs += performance.now() - startedMs;
  };
  const read = async () => {
    const text = await page.locator('main').innerText();
    for (const line of text.split('\n').filter((each) => !seen.has(each))) {
      seen.add(line);
      // Nobody reads a command that is to be copied, nor an identifier.
      if (!/mosquitto_pub|-[utm] |[0-9a-f]{8}-/.test(line))
        words += line.match(/\S+/g)?.length ?? 0;
    }
  };
  const click = async (place: Locator) => {
    clicks += 1;
    await timed(place.click());
  };
  return {
    read,
    click,
    async type(field, text) {
      const hasFocus = (await field.and(page.locator(':focus')).count()) > 0;
      if (!hasFocus) await click(field);
      letters += text.length;
      await field.fill(text);
    },
    act: (times) => void (clicks += times),
    async waitFor(place) {
      await timed(place.waitFor());
      await read();
    },
    figure() {
      const minutes =
        words / pace.wordsReadPerMinute + letters / lettersPerWord / pace.wordsTypedPerMinute;
      const seconds = Math.round(minutes * 60 + (clicks * pace.clickMs + pageMs) / 1_000);
      return { seconds, clicks, words, letters };
    },
  };
}

export function sayFigure(
  what: string,
  { seconds, clicks, words, letters }: ReturnType<Human['figure']>,
) {
  process.stdout.write(
    `${what}: ${seconds} s with ${clicks} clicks, ${words} words read and ${letters} letters typed.\n`,
  );
}
