import type { Locator, Page } from 'playwright-core';

/**
 * The pace of silent reading, of typing on a telephone or with few fingers, and of moving to a place and clicking it.
 */
const pace = { wordsReadPerMinute: 220, wordsTypedPerMinute: 40, clickMs: 1_200 };
/** A word as typists count it. */
const lettersPerWord = 5;

export type Human = {
  /** Reads what is new on the screen. */
  read: () => Promise<void>;
  click: (place: Locator) => Promise<void>;
  /** Types into a field that has the focus already, or is clicked first. */
  type: (field: Locator, text: string) => Promise<void>;
  /** Something outside the page, such as switching to the terminal, pasting, pressing Enter. */
  act: (times: number) => void;
  /** Waits for the page, and reads what appeared. */
  waitFor: (place: Locator) => Promise<void>;
  /** The total: the person's time plus the page's. */
  figure: () => { seconds: number; clicks: number; words: number; letters: number };
};

/**
 * Somebody who has never seen the page and reads all of it, at a known pace. The test does not wait for the person: the
 * time for reading, typing and clicking is added to the time that the page itself took.
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
