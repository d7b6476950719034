import type { Locator, Page } from 'playwright-core';

/** What a browser does with a tab that goes to the background. */
export const show = (page: Page, state: 'hidden' | 'visible') =>
  page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);

export const hourMs = 3_600_000;
export const lengthOf = (range: () => { from: number; to: number }) => () =>
  range().to - range().from;

/** Moves fingers on a chart, step by step; each position is a share of its width. */
export async function touch(page: Page, chart: Locator, steps: number[][]): Promise<void> {
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (!box) throw new Error('The chart is not on the screen.');
  const session = await page.context().newCDPSession(page);
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', parts: number[]) =>
    session.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: parts.map((part, id) => ({ x: box.x + box.width * part, y: box.y + 60, id })),
    });
  const [first = [], ...rest] = steps;
  await send('touchStart', first);
  for (const parts of rest) await send('touchMove', parts);
  await send('touchEnd', []);
}

export type Trace = {
  traceEvents: {
    name: string;
    pid: number;
    tid: number;
    tdur?: number;
    dur?: number;
    args: { name?: string };
  }[];
};

/**
 * The longest task of the threads that run pages, ms of processor time: another program on the machine does not count.
 */
export function longestTask({ traceEvents }: Trace): number {
  const threads = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid}/${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ name, pid, tid }) => name.endsWith('RunTask') && threads.has(`${pid}/${tid}`),
  );
  return Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1_000));
}
