import { useId, useState } from 'preact/hooks';
import { parseNumber, typeNumber } from '../../text/number.ts';
import { wrongNumber } from '../../parts/number-field.tsx';
import { locale } from '../../text/t.ts';
import { text } from './texts.ts';

type NumberInputProps = {
  label: string;
  unit?: string | undefined;
  value: number | undefined;
  least?: number;
  onChange: (value: number) => void;
};

/** A number within a sentence. What is no number stays on the screen, and changes nothing. */
export function NumberInput({ label, unit, value, least, onChange }: NumberInputProps) {
  const id = useId();
  const [typed, setTyped] = useState<{ text: string; of: number | undefined } | null>(null);
  const isTyped = typed !== null && typed.of === value;
  const shown = isTyped ? typed.text : value === undefined ? '' : typeNumber(value, locale());
  const read = (typedText: string) => {
    const number = parseNumber(typedText, locale());
    return number === null || (least !== undefined && number < least) ? null : number;
  };
  const isWrong = isTyped && read(typed.text) === null;
  const take = (typedText: string) => {
    const number = read(typedText);
    setTyped({ text: typedText, of: number ?? value });
    if (number !== null && number !== value) onChange(number);
  };
  return (
    <span class="word-number">
      <input
        aria-label={unit === undefined ? label : `${label}, ${unit}`}
        type="text"
        inputMode="text"
        autocomplete="off"
        spellcheck={false}
        value={shown}
        aria-invalid={isWrong ? 'true' : undefined}
        aria-describedby={isWrong ? id : undefined}
        onInput={({ currentTarget }) => take(currentTarget.value)}
        onBlur={() => isWrong || setTyped(null)}
      />
      {unit !== undefined && <span class="muted">{unit}</span>}
      {isWrong && (
        <span class="field-problem" id={id}>
          {wrongNumber()}
        </span>
      )}
    </span>
  );
}

const units = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof units;
const unitNames = Object.keys(units) as Unit[];

const unitOf = (ms: number): Unit =>
  unitNames.findLast((unit) => ms >= units[unit] && ms % units[unit] === 0) ?? 's';

type DurationInputProps = { label: string; ms: number; onChange: (ms: number) => void };

/** A duration within a sentence: a number and its unit. */
export function DurationInput({ label, ms, onChange }: DurationInputProps) {
  const [chosen, setChosen] = useState<Unit | null>(null);
  const unit = chosen ?? unitOf(ms);
  return (
    <span class="word-duration">
      <NumberInput
        label={label}
        value={ms / units[unit]}
        least={0}
        onChange={(number) => onChange(Math.round(number * units[unit]))}
      />
      <select
        aria-label={text('rules.unitOf', { label })}
        value={unit}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value as Unit;
          setChosen(next);
          onChange(Math.round((ms / units[unit]) * units[next]));
        }}
      >
        {unitNames.map((each) => (
          <option key={each} value={each}>
            {text(`rules.unit.${each}`)}
          </option>
        ))}
      </select>
    </span>
  );
}

type ChoiceProps<T extends string> = {
  label: string;
  value: T;
  options: readonly (readonly [value: T, text: string])[];
  onChange: (value: T) => void;
};

/** A word of a sentence that may be another one. */
export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <select
      class="word"
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value as T)}
    >
      {options.map(([each, said]) => (
        <option key={each} value={each}>
          {said}
        </option>
      ))}
    </select>
  );
}

type TickProps = { label: string; checked: boolean; onChange: (checked: boolean) => void };

export function Tick({ label, checked, onChange }: TickProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
