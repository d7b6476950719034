import type { Purpose } from '../../../contract/purpose.ts';
import type { Warning } from '../../../contract/warnings.ts';

type Policy = { createScriptURL(url: string): URL };
type Policies = {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
};

/** The only one that the page's policy of content allows; null where the browser knows none. */
const policy =
  (window as unknown as { trustedTypes?: Policies }).trustedTypes?.createPolicy('explore', {
    createScriptURL(url) {
      if (!url.startsWith('/console/assets/explore-')) throw new Error('No script of the page.');
      return url;
    },
  }) ?? null;

/** The thread's script: the page names it, because its name has a hash. */
function script(): string | URL {
  const url = document.querySelector<HTMLMetaElement>('meta[name="explore"]')?.content ?? '';
  return policy?.createScriptURL(url) ?? url;
}

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
