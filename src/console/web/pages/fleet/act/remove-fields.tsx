import { useState } from 'preact/hooks';
import { t } from '../../../text/t.ts';
import { selection } from '../selection.ts';
import type { FieldsProps } from './asked.ts';

/** There is no way back: the name of the one device, or their number, has to be typed. */
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
