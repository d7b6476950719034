import { useId, useState } from 'preact/hooks';
import type { DeviceAction } from '../../../api/types.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { type AskedQuiet, QuietFields, quietFromNow } from '../../../parts/form.tsx';
import { Problem } from '../../../parts/panel.tsx';
import { count, t } from '../../../text/t.ts';
import { describeFilter, useLabels } from '../filter.tsx';
import { clearSelection, selection, toTarget } from '../fleet-table.tsx';
import { begin } from '../jobs.tsx';

export type ActionDialogProps = { number: number; onClose: () => void };

const fields = {
  label: LabelFields,
  unlabel: LabelFields,
  mute: MuteFields,
  remove: RemoveFields,
} as const;

/** Asks for what an action needs, says how many devices it affects, and starts it. */
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

/** A label to add or to remove; existing ones are suggested. */
export function LabelFields({ what, onChange }: FieldsProps) {
  const { data: labels = [] } = useLabels();
  const [text, setText] = useState('');
  const id = useId();
  const take = (next: string) => {
    setText(next);
    const label = next.trim();
    onChange(label === '' ? null : { labels: [label] });
  };
  return (
    <>
      <label class="field">
        <span>{t('act.label.which')}</span>
        <input
          value={text}
          list={id}
          maxLength={64}
          autocomplete="off"
          autofocus
          placeholder={t('act.label.placeholder')}
          onInput={({ currentTarget }) => take(currentTarget.value)}
        />
      </label>
      <datalist id={id}>
        {labels.map(({ label }) => (
          <option key={label} value={label} />
        ))}
      </datalist>
      {what === 'unlabel' && <p class="fine">{t('act.unlabel.hint')}</p>}
    </>
  );
}

/** For how long notifications of the chosen devices are suppressed. */
export function MuteFields({ onChange }: FieldsProps) {
  return (
    <>
      <p class="fine">{t('act.mute.hint')}</p>
      <QuietFields onChange={onChange} />
    </>
  );
}

/** This cannot be undone, so the device's name or the number of devices must be typed. */
export function RemoveFields({ number, onChange }: FieldsProps) {
  const [text, setText] = useState('');
  const { value } = selection;
  const [only = ''] = value.kind === 'some' && number === 1 ? value.names.values() : [];
  const wanted = only.trim() || String(number);
  return (
    <>
      <p>{t('act.remove.hint')}</p>
      <label class="field">
        <span>{t('act.remove.type', { word: wanted })}</span>
        <input
          value={text}
          autocomplete="off"
          spellcheck={false}
          autofocus
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            onChange(currentTarget.value.trim() === wanted ? {} : null);
          }}
        />
      </label>
    </>
  );
}

/** What an action needs besides its devices. */
export type Asked = Required<Pick<DeviceAction, 'labels'>> | AskedQuiet | Record<string, never>;

/** The same as members of the request. */
export const toMembers = (asked: Asked): Pick<DeviceAction, 'labels' | 'untilTs' | 'reason'> =>
  'forMs' in asked ? quietFromNow(asked as AskedQuiet) : asked;

/** Props of a form's fields; they call `onChange` with null while they are incomplete. */
export type FieldsProps = {
  what: 'label' | 'unlabel' | 'mute' | 'remove';
  number: number;
  onChange: (asked: Asked | null) => void;
};

const named = 5;

/** Which devices it affects, in words: some names, or the filter that they match. */
export function Affected() {
  const { value } = selection;
  if (value.kind === 'all') return <p class="fine">{describeFilter(value.filter)}</p>;
  const names = [...value.names.values()].map((name) => name || t('fleet.unnamed'));
  const more = names.length - named;
  return (
    <p class="fine affected">
      {names.slice(0, named).join(', ')}
      {more > 0 && ` ${count('fleet.more', more)}`}
    </p>
  );
}
