import './no-eval.ts';
import type { Purpose } from '../../../contract/purpose.ts';
import { explore } from '../../../engine/explore/explore.ts';
import { findingsOf } from '../../../engine/explore/findings.ts';

/* The page's thread that tries rules, one after the other, as the service does: see explore.ts. */

self.addEventListener('message', ({ data }: MessageEvent<{ turn: number; purpose: Purpose }>) => {
  const { turn, purpose } = data;
  const found = findingsOf([purpose], explore([purpose]), { pathOf: () => '' });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  self.postMessage({ turn, found });
});
