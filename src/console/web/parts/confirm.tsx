import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { t } from '../text/t.ts';
import { Dialog } from './dialog.tsx';
import { Problem } from './problem.tsx';

type ConfirmProps = {
  title: string;
  /** What the button says: what is done, not "yes". */
  action: string;
  children?: ComponentChildren;
  onCancel: () => void;
  /** Closes the dialog itself where it went well. */
  onConfirm: () => Promise<void>;
};

/** Asks before something is done that cannot be undone; an error stays in the dialog. */
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
