import type { Page } from 'playwright-core';

/** Texts on the pages that do not come from the lists: data of the account, texts of the service, and times. */
const data = [
  // Data of the account, as fill() creates it.
  /[\w.]+@example\.com|Cold room( \d)?|Dispatch, ramp 4|Van 12|Laboratory fridge|CR-\d+/g,
  /Hive at the lime tree|cold chain|ground floor|Temperature|Humidity|Too warm|Too humid|watched|none/g,
  /<img src=x onerror=alert\(1\)>|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  /\((kg|°C|%|l\/min|bar|W|kWh)\)/g,
  /climate|\d+ \(mqtt\)|^(devices\/|up\/|measurements)$|node|\d+ kB/g,
  // Made by Intl.
  /\b\d{1,2} [A-Z][a-z]{2,3}\b|\b(in )?\d+ (sec|min|hr|day)s?\.?( ago)?|\b(now|yesterday|today|CES?T)\b/g,
  /\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b/g,
  /(January|February|March|April|May|June|July|August|September|October|November|December) \d{4}/g,
  /Europe\/Berlin/g,
  // The languages' own names.
  /English|Deutsch/g,
];

/** Texts and names on the page that are not in the lists of texts, when the lists are in the pseudo-language. */
export async function findHardCoded(page: Page): Promise<string[]> {
  const shown = (await page.evaluate(`(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [document.title.split('·')[0]];
    while (walker.nextNode())
      // Code, keys, and what the service says of what it refused and evaluates.
      if (!walker.currentNode.parentElement.closest('code, pre, kbd, noscript, .rejections, .why'))
        found.push(walker.currentNode.data);
    for (const name of ['aria-label', 'title', 'placeholder', 'alt'])
      for (const each of document.querySelectorAll('[' + name + ']')) found.push(each.getAttribute(name));
    return found;
  })()`)) as string[];
  return shown.filter((text) => /\p{L}{2,}/u.test(strip(text)));
}

function strip(text: string): string {
  let left = text;
  for (let before = ''; before !== left;) {
    before = left;
    left = left.replaceAll(/⟦[^⟦⟧]*⟧/g, '');
  }
  for (const known of data) left = left.replaceAll(known, '');
  return left;
}
