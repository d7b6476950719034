import { useState } from 'preact/hooks';
import { Dialog } from '../../parts/dialog.tsx';
import { count, t } from '../../text/t.ts';

export type CloseProps = {
  number: number;
  /** How many of them are not over; null: only the service knows. */
  holding: number | null;
  onCancel: () => void;
  onClose: (how: { force?: boolean; note?: string }) => void;
};

/** Those that are not over stay open, unless somebody says otherwise. */
export function CloseDialog({ number, holding, onCancel, onClose }: CloseProps) {
  const [isForced, setIsForced] = useState(false);
  const [note, setNote] = useState('');
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const text = note.trim();
    onClose({ ...(isForced ? { force: true } : {}), ...(text === '' ? {} : { note: text }) });
  };
  return (
    <Dialog title={count('alarms.closeMany', number)} onClose={onCancel}>
      <form class="form" onSubmit={send}>
        {holding !== null && holding > 0 && <p>{count('alarms.closeHolding', holding)}</p>}
        {holding !== 0 && (
          <label class="check">
            <input
              type="checkbox"
              checked={isForced}
              onChange={({ currentTarget }) => setIsForced(currentTarget.checked)}
            />
            <span>{t('alarms.closeForced')}</span>
          </label>
        )}
        <p class="fine">{t('alarms.closeHint')}</p>
        <label class="field">
          <span>{t('alarms.note')}</span>
          <input
            name="note"
            value={note}
            maxLength={1_000}
            autocomplete="off"
            onInput={({ currentTarget }) => setNote(currentTarget.value)}
          />
        </label>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main">
            {t('alarms.close')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
