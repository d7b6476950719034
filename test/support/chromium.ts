import { chromium, type Browser } from 'playwright-core';
import { findProgram } from './program.ts';

/** The same pages without windows around them: the first takes half of the processor's time. */
const programs = ['chromium-headless-shell', 'chromium', 'google-chrome'];

/** Null where the machine has none: what needs it is skipped. */
export const chromiumPath = programs.map(findProgram).find((path) => path !== null) ?? null;

export const hasChromium = chromiumPath !== null;

/** The machine's own Chromium without a window; none is downloaded. */
export function startChromium(): Promise<Browser> {
  if (chromiumPath === null) throw new Error('This machine has no Chromium.');
  // As root, as in containers, it has no sandbox.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--in-process-gpu'];
  return chromium.launch({ executablePath: chromiumPath, args });
}
