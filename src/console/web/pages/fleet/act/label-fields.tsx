import { useId, useState } from 'preact/hooks';
import { t } from '../../../text/t.ts';
import { useLabels } from '../label-filter.tsx';
import type { FieldsProps } from './asked.ts';

/** A label to put on, or to take off; those that there are already are proposed. */
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
