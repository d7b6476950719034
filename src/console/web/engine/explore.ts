import type { Purpose } from '../../../contract/purpose.ts';
import type { Warning } from '../../../contract/warnings.ts';

/** Where the thread's script is: the page names it, because its name has a hash. */
const script = () => document.querySelector<HTMLMetaElement>('meta[name="explore"]')?.content ?? '';

let worker: Worker | null = null;
let turn = 0;

/**
 * What trying a rule shows, found in a thread, with the same effort as in the service. Null if another rule is tried
 * before it is found, or if the thread fails.
 */
export function exploreRule(purpose: Purpose): Promise<Warning[] | null> {
  worker ??= new Worker(script(), { type: 'module' });
  const own = worker;
  const asked = (turn += 1);
  return new Promise((resolve) => {
    const listening = new AbortController();
    const end = (found: Warning[] | null) => {
      listening.abort();
      resolve(found);
    };
    own.addEventListener(
      'message',
      ({ data }: MessageEvent<{ turn: number; found: Warning[] }>) => {
        if (data.turn >= asked) end(data.turn === asked && asked === turn ? data.found : null);
      },
      listening,
    );
    own.addEventListener(
      'error',
      () => {
        if (worker === own) worker = null;
        end(null);
      },
      listening,
    );
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    own.postMessage({ turn: asked, purpose });
  });
}
