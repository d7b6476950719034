import { useState } from 'preact/hooks';
import { Dialog } from '../../../parts/dialog.tsx';
import { Problem } from '../../../parts/problem.tsx';
import { count, t } from '../../../text/t.ts';
import { begin } from '../jobs/jobs.ts';
import { clearSelection, selection, toTarget } from '../selection.ts';
import { toMembers, type Asked } from './asked.ts';
import { Affected } from './affected.tsx';
import { LabelFields } from './label-fields.tsx';
import { MuteFields } from './mute-fields.tsx';
import { RemoveFields } from './remove-fields.tsx';

export type ActionDialogProps = { number: number; onClose: () => void };

const fields = {
  label: LabelFields,
  unlabel: LabelFields,
  mute: MuteFields,
  remove: RemoveFields,
} as const;

/** Asks what an action needs, says with how many devices it is done, and begins it. */
export function ActionDialog({
  what,
  number,
  onClose,
}: ActionDialogProps & { what: keyof typeof fields }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const Fields = fields[what];
  const send = async () => {
    if (!asked || isSending) return;
    setSending(true);
    setError(null);
    try {
      await begin({ action: what, ...toMembers(asked), ...toTarget(selection.value) });
      onClose();
      clearSelection();
    } catch (thrown) {
      setError(thrown);
      setSending(false);
    }
  };
  return (
    <Dialog
      title={t(`act.${what}.title`, { devices: count('fleet.devices', number) })}
      onClose={onClose}
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Affected />
        <Fields what={what} number={number} onChange={setAsked} />
        {error !== null && <Problem error={error} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <button
            type="submit"
            class={what === 'remove' ? 'button button-bad' : 'button button-main'}
            disabled={asked === null || isSending}
          >
            {t(`act.${what}.do`)}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
