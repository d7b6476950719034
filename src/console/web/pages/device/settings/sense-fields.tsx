import { useEffect, useId, useRef } from 'preact/hooks';
import { t } from '../../../text/t.ts';
import { numberFields, senseFields, type DraftSense, type SenseField } from './draft.ts';

type SenseFieldsProps = {
  sense: DraftSense;
  /** Where it stands in the configuration, as a JSON Pointer. */
  path: string;
  problemAt: (path: string) => string;
  /** It is what the page was opened for. */
  isWanted: boolean;
  onChange: (field: SenseField, value: string) => void;
  onRemove: () => void;
};

/** One sense: what it is called, its unit, and between which values it is taken. */
export function SenseFields(props: SenseFieldsProps) {
  const { sense, path, problemAt, isWanted, onChange, onRemove } = props;
  const box = useRef<HTMLFieldSetElement>(null);
  useEffect(() => {
    if (!isWanted || !box.current) return;
    box.current.scrollIntoView({ block: 'center' });
    box.current.querySelector<HTMLInputElement>('input[name=min]')?.focus({ preventScroll: true });
  }, [isWanted]);
  return (
    <fieldset ref={box} class={isWanted ? 'sense sense-wanted' : 'sense'}>
      <legend>{sense.name || sense.sId}</legend>
      <div class="sense-fields">
        {senseFields.map((field) => (
          <Field
            key={field}
            field={field}
            value={sense[field]}
            unit={sense.unit}
            problem={problemAt(`${path}/${field}`)}
            onChange={onChange}
          />
        ))}
      </div>
      {keepsLimits(sense) && (
        <p class="notice" role="status">
          {t('settings.limitsKept', { unit: sense.unit })}
        </p>
      )}
      <button type="button" class="link" onClick={onRemove}>
        {t('settings.removeSense', { name: sense.name || sense.sId })}
      </button>
    </fieldset>
  );
}

/** Another unit, and the limits as they were: nothing converts them. */
function keepsLimits({ own, unit, min, max }: DraftSense): boolean {
  const isOther = own.unit !== undefined && unit !== '' && unit !== own.unit;
  const isKept = min === String(own.min ?? '') && max === String(own.max ?? '');
  return isOther && isKept && (min !== '' || max !== '');
}

type FieldProps = {
  field: SenseField;
  value: string;
  unit: string;
  problem: string;
  onChange: (field: SenseField, value: string) => void;
};

function Field({ field, value, unit, problem, onChange }: FieldProps) {
  const isRange = (field === 'min' || field === 'max') && unit !== '';
  const label = t(`settings.${field}`);
  const id = useId();
  const isWrong = problem !== '';
  return (
    <div class="field">
      <label for={id}>{isRange ? `${label} (${unit})` : label}</label>
      <input
        id={id}
        name={field}
        value={value}
        autocomplete="off"
        inputMode={numberFields.includes(field) ? 'decimal' : 'text'}
        aria-invalid={isWrong}
        aria-describedby={isWrong ? `${id}-problem` : undefined}
        onInput={({ currentTarget }) => onChange(field, currentTarget.value)}
      />
      {isWrong && (
        <span class="field-problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </div>
  );
}
