import { useState } from 'preact/hooks';
import { nameOfSense } from '../../api/devices.ts';
import type { LatestView, Purpose, Sense } from '../../api/types.ts';
import { Form, Submit, useForm } from '../../parts/form.tsx';
import { NumberField, numberOf, wrongNumber } from '../../parts/number-field.tsx';
import { formatTyped } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { contradictions, marginOf, type ProfileLimit, withNumbers } from './numbers.ts';
import { Now } from './limits-form.tsx';

type NumbersFormProps = {
  purposes: readonly Purpose[];
  limits: readonly ProfileLimit[];
  senses: ReadonlyMap<string, Sense>;
  latest: readonly LatestView[];
  onSave: (purposes: Purpose[]) => Promise<void>;
};

/** The numbers of a profile that somebody else wrote; everything else in it stays as it is. */
export function NumbersForm({ purposes, limits, senses, latest, onSave }: NumbersFormProps) {
  const [wrong, setWrong] = useState<readonly string[]>([]);
  const [shown, setShown] = useState(() => limits.map(({ value }) => value));
  const read = (values: FormData) => {
    const typed = limits.map((_, place) => numberOf(values, `limit:${place}`));
    return { typed, numbers: typed.map((value, place) => value ?? limits[place]?.value ?? 0) };
  };
  const form = useForm(async (values) => {
    const { typed, numbers } = read(values);
    const found = contradictions(limits, numbers).map((text, place) =>
      typeof typed[place] === 'number' ? text : wrongNumber(),
    );
    setWrong(found);
    if (found.every((text) => text === ''))
      await onSave(withNumbers({ purposes, limits, senses }, numbers));
  });
  return (
    <Form
      form={form}
      onInput={({ currentTarget }) => setShown(read(new FormData(currentTarget)).numbers)}
    >
      <p class="fine">{t('watch.numbersHint')}</p>
      {limits.map(({ sId, which, value, name, from, to, isAlone }, place) => {
        const sense = senses.get(sId);
        const margin = marginOf(limits, shown, place);
        return (
          <fieldset key={place} class="watch-sense">
            <legend>
              {name || nameOfSense(sId, sense)}{' '}
              <Now sense={sense} value={latest.find((each) => each.sId === sId)} />
            </legend>
            <NumberField
              name={`limit:${place}`}
              label={t(which === 'isGt' ? 'watch.isAbove' : 'watch.isBelow', {
                name: nameOfSense(sId, sense),
              })}
              unit={sense?.unit}
              value={value}
              problem={wrong[place] ?? ''}
            />
            <p class="fine">
              {to !== null && t('watch.moves', { from, to })}
              {to === null && !isAlone && t('watch.inState', { from })}
              {margin !== null &&
                ` ${t('watch.margin', { value: formatTyped(margin, { unit: sense?.unit }) })}`}
            </p>
          </fieldset>
        );
      })}
      <div>
        <Submit form={form}>{t('watch.save')}</Submit>
      </div>
    </Form>
  );
}
