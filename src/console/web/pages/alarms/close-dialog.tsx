import { useState } from 'preact/hooks';
import { count, t } from '../../text/t.ts';
import { NoteDialog } from './alarm-actions.tsx';

export type CloseProps = {
  number: number;
  /** How many of them are not over; null: only the service knows. */
  holding: number | null;
  onCancel: () => void;
  onClose: (how: { force?: boolean; note?: string }) => void;
};

/** Asks before several alarms are closed. Those that are not over stay open, unless somebody says otherwise. */
export function CloseDialog({ number, holding, onCancel, onClose }: CloseProps) {
  const [isForced, setIsForced] = useState(false);
  return (
    <NoteDialog
      title={count('alarms.closeMany', number)}
      action={t('alarms.close')}
      hint={t('alarms.closeHint')}
      onCancel={onCancel}
      onSend={(note) =>
        onClose({ ...(isForced ? { force: true } : {}), ...(note === '' ? {} : { note }) })
      }
    >
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
    </NoteDialog>
  );
}
