import { chromium, type Browser } from 'playwright-core';
import { findProgram } from './program.ts';

const executablePath = findProgram('chromium') ?? findProgram('google-chrome');

export const hasChromium = executablePath !== null;

/** The machine's own Chromium without a window; none is downloaded. */
export function startChromium(): Promise<Browser> {
  if (executablePath === null) throw new Error('This machine has no Chromium.');
  // As root, as in containers, it has no sandbox.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
