import { useId } from 'preact/hooks';
import { locale, t } from '../text/t.ts';
import { parseNumber, typeNumber } from '../text/number.ts';

type NumberFieldProps = {
  name: string;
  label: string;
  unit?: string | undefined;
  value: number | undefined;
  /** What is wrong with it, in the reader's language; empty if nothing is. */
  problem: string;
};

/**
 * A number in the reader's language. A field of text: one of numbers reads `10,5` as 105 where the browser has another
 * language than the console, and the keyboard for decimals of an iPhone has no minus.
 */
export function NumberField({ name, label, unit, value, problem }: NumberFieldProps) {
  const id = useId();
  return (
    <div class="field number-field">
      <label for={id}>{label}</label>
      <span class="number-input">
        <input
          id={id}
          name={name}
          type="text"
          inputMode="text"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          defaultValue={value === undefined ? '' : typeNumber(value, locale())}
          aria-invalid={problem === '' ? undefined : 'true'}
          aria-describedby={problem === '' ? undefined : `${id}-problem`}
        />
        {unit !== undefined && <span class="muted">{unit}</span>}
      </span>
      {problem !== '' && (
        <span class="field-problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </div>
  );
}

/** What was typed: undefined if nothing was, null if it is no number. */
export function numberOf(form: FormData, name: string): number | null | undefined {
  const text = form.get(name);
  if (typeof text !== 'string' || text.trim() === '') return undefined;
  return parseNumber(text, locale());
}

/** How a number is written in the reader's language, for the text that says what is wrong. */
export const wrongNumber = (): string => t('number.wrong', { example: typeNumber(21.5, locale()) });
