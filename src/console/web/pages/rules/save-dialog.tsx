import { useState } from 'preact/hooks';
import { ApiError } from '../../api/request.ts';
import { addPurpose, replacePurpose } from '../../api/rules.ts';
import { navigate } from '../../app/router.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import type { Rule } from './document.ts';
import { isNew, keepDraft } from './draft.ts';
import { text } from './texts.ts';
import { ChangeList } from './versions.tsx';

type SaveProps = {
  id: string;
  rule: Rule;
  tag: string;
  /** What is other than in the saved rule, in words. */
  changes: readonly string[];
  onClose: () => void;
  onSaved: (tag: string) => void;
};

/** Saves a rule, with the reason; says so if somebody else has changed it since. */
export function SaveDialog({ id, rule, tag, changes, onClose, onSaved }: SaveProps) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isBehind = error instanceof ApiError && error.status === 412;
  const save = async (ifMatch: string | undefined) => {
    setBusy(true);
    setError(null);
    try {
      if (isNew(id)) {
        const uuid = await addPurpose(rule, reason.trim());
        keepDraft(id, null);
        navigate(`rules/${uuid}${location.search}`, { replace: true });
      } else onSaved(await replacePurpose(id, rule, { tag: ifMatch, reason: reason.trim() }));
      say(text('rules.isSaved'));
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <Dialog title={text('rules.saveTitle')} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void save(isBehind ? undefined : tag || undefined);
        }}
      >
        {changes.length > 0 && <ChangeList changes={changes} />}
        <label class="field">
          <span>{text('rules.reason')}</span>
          <input
            name="reason"
            value={reason}
            maxLength={500}
            placeholder={text('rules.reasonHint')}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </label>
        <p class="fine">{text('rules.saveHint')}</p>
        {isBehind ? <p class="notice">{text('rules.behind')}</p> : <Problem error={error} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main" disabled={isBusy}>
            {text(isBehind ? 'rules.overwrite' : 'rules.save')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
