import { chromium, type Browser } from 'playwright-core';
import { findProgram } from './program.ts';

/** They show the same pages. The first one has no windows and takes half of the processor time. */
const programs = ['chromium-headless-shell', 'chromium', 'google-chrome'];

/** Null if the machine has none; tests that need it are then skipped. */
export const chromiumPath = programs.map(findProgram).find((path) => path !== null) ?? null;

export const hasChromium = chromiumPath !== null;

/** The machine's own Chromium, without a window. None is downloaded. */
export function startChromium(): Promise<Browser> {
  if (chromiumPath === null) throw new Error('This machine has no Chromium.');
  // Run as root, as in containers, it has no sandbox.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--in-process-gpu'];
  return chromium.launch({ executablePath: chromiumPath, args });
}
