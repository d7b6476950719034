import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { t } from '../text/t.ts';
import { Problem } from './panel.tsx';

/**
 * The browser's own dialog: it traps the focus, and Escape closes it. Without `onClose` nothing but the page closes it,
 * for what must not go by a key.
 */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose?: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  const id = useId();
  // Before the next key press; otherwise the focus would be lost when the dialog closes.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => {
      isGone.current = true;
      current?.close();
    };
  }, []);
  // The `close` event comes later, when another dialog may have opened instead: handle Escape at once.
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose?.();
  };
  const close = () => {
    if (isGone.current) return;
    if (onClose) onClose();
    // Chromium closes it on the second Escape, whatever the first one was answered.
    else dialog.current?.showModal();
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onCancel={cancel} onClose={close}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

type ConfirmProps = {
  title: string;
  /** The button's text: the action, not "yes". */
  action: string;
  children?: ComponentChildren;
  onCancel: () => void;
  /** Closes the dialog itself on success. */
  onConfirm: () => Promise<void>;
};

/** Asks before an action that cannot be undone; an error is shown in the dialog. */
export function Confirm({ title, action, children, onCancel, onConfirm }: ConfirmProps) {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async () => {
    setIsBusy(true);
    try {
      await onConfirm();
    } catch (thrown) {
      setError(thrown);
      setIsBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onCancel}>
      <div class="form">
        {children}
        <Problem error={error} />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button
            type="button"
            class="button button-danger"
            disabled={isBusy}
            onClick={() => void run()}
          >
            {action}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
