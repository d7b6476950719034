import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { t } from '../text/t.ts';

type CopyProps = {
  text: string;
  label: string;
  /** What is copied, if the shown text hides a part of it. */
  copied?: string;
};

/** Text to copy. Without a secure context there is no clipboard; then the whole text is selected instead. */
export function CopyText({ text: shown, label, copied = shown }: CopyProps) {
  const code = useRef<HTMLElement>(null);
  const [done, setDone] = useState<'copied' | 'selected' | null>(null);
  // What is selected must be the text that would be copied.
  const text = done === 'selected' ? copied : shown;
  useLayoutEffect(() => {
    if (done === 'selected' && code.current) getSelection()?.selectAllChildren(code.current);
  }, [done]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(copied);
      setDone('copied');
    } catch {
      setDone('selected');
      return;
    }
    setTimeout(() => setDone(null), 3_000);
  };
  return (
    <div class="copy">
      <pre class="copy-text" tabIndex={0} role="region" aria-label={label}>
        <code ref={code}>{text}</code>
      </pre>
      <button type="button" class="button" onClick={() => void copy()}>
        <span aria-live="polite">{done === null ? t('common.copy') : t(`common.${done}`)}</span>
      </button>
    </div>
  );
}
