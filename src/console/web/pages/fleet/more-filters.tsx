import { useRef, useState } from 'preact/hooks';
import type { ListedDevice } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { Form, Submit, textOf, useForm } from '../../parts/form.tsx';
import { NumberField, numberOf, wrongNumber } from '../../parts/number-field.tsx';
import { t } from '../../text/t.ts';
import { valueOf } from './filter.tsx';

/** Filters that are needed less often: a value, a value beyond its limit, the version of the software. */
export function MoreFilters({ devices }: { devices: readonly ListedDevice[] }) {
  const { data } = useLatest(devices.map(({ uuid }) => uuid));
  // What is typed stays while values are read again.
  const known = useRef(data);
  known.current = data ?? known.current;
  const [wrong, setWrong] = useState('');
  // Senses of the devices on the page, by their names.
  const senses = new Map(known.current?.map(({ sId, name }) => [sId, name ?? sId]));
  const chosen = valueOf(queryOf('value'));
  if (chosen) senses.set(chosen.sId, senses.get(chosen.sId) ?? chosen.sId);
  const form = useForm(async (values) => {
    const number = numberOf(values, 'number');
    setWrong(number === null ? wrongNumber() : '');
    if (number === null) return;
    const sId = textOf(values, 'sense');
    const isGiven = number !== undefined && sId !== '';
    setQuery({
      value: isGiven ? `${sId}:${textOf(values, 'than')}:${number}` : '',
      beyond: textOf(values, 'beyond'),
      swVersion: textOf(values, 'swVersion').trim(),
      cursor: '',
      from: '',
    });
  });
  return (
    <Form form={form}>
      <label class="check">
        <input
          type="checkbox"
          name="beyond"
          value="true"
          defaultChecked={queryOf('beyond') === 'true'}
        />
        <span>{t('filters.beyond')}</span>
      </label>
      {senses.size > 0 && (
        <fieldset class="filter-value">
          <legend>{t('filters.value')}</legend>
          <select name="sense" aria-label={t('filters.sense')}>
            {[...senses].map(([sId, name]) => (
              <option key={sId} value={sId} selected={sId === chosen?.sId}>
                {name}
              </option>
            ))}
          </select>
          <select name="than" aria-label={t('filters.than')}>
            <option value="gt">{t('filters.gt')}</option>
            <option value="lt" selected={chosen?.than === 'lt'}>
              {t('filters.lt')}
            </option>
          </select>
          <NumberField
            name="number"
            label={t('filters.number')}
            unit={undefined}
            value={chosen?.number}
            problem={wrong}
          />
        </fieldset>
      )}
      <label class="field">
        <span>{t('filters.swVersion')}</span>
        <input name="swVersion" defaultValue={queryOf('swVersion')} autocomplete="off" />
      </label>
      <Submit form={form}>{t('filters.apply')}</Submit>
    </Form>
  );
}
