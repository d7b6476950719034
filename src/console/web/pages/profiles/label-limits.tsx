import { useId, useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { type LabelLimit, listLabelLimits, listPurposes } from '../../api/devices.ts';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { profiles as de } from '../../text/de/profiles.ts';
import { profiles as en } from '../../text/en/profiles.ts';
import { t, textsOf } from '../../text/t.ts';
import { useLabels } from '../fleet/filter.tsx';
import { beginOnLabels } from '../fleet/jobs.tsx';

const text = textsOf(en, de);

type Stored = {
  limits: readonly LabelLimit[];
  purposes: readonly { uuid: string; name: string }[];
};

/** Which stored purpose devices with a label get as their profile; of several labels the first one counts. */
export function LabelLimits() {
  const query = useQuery('label-limits', async (signal): Promise<Stored> => {
    const [limits, purposes] = await Promise.all([listLabelLimits(signal), listPurposes(signal)]);
    return { limits, purposes };
  });
  return (
    <section class="panel" aria-labelledby="label-limits">
      <h2 id="label-limits">{text('labelLimits.title')}</h2>
      <p class="fine">{text('labelLimits.hint')}</p>
      <Answered query={query} lines={2}>
        {(stored) =>
          stored.purposes.length === 0 && stored.limits.length === 0 ? (
            <p class="fine">
              {t('install.none')}. {t('install.noneHint')}
            </p>
          ) : (
            <LabelLimitsForm
              key={JSON.stringify(stored.limits)}
              stored={stored}
              onSaved={query.reload}
            />
          )
        }
      </Answered>
    </section>
  );
}

type FormProps = { stored: Stored; onSaved: () => void };

function LabelLimitsForm({ stored: { limits, purposes }, onSaved }: FormProps) {
  const { data: labels = [] } = useLabels();
  const [rows, setRows] = useState(limits);
  const [label, setLabel] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const known = useId();
  const isChanged = JSON.stringify(rows) !== JSON.stringify(limits);
  const change = (place: number, purposeUuid: string) =>
    setRows(rows.map((row, n) => (n === place ? { ...row, purposeUuid } : row)));
  const add = () => {
    const name = label.trim();
    const [first] = purposes;
    if (name === '' || !first || rows.some((row) => row.label === name)) return;
    setRows([...rows, { label: name, purposeUuid: first.uuid }]);
    setLabel('');
  };
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await beginOnLabels(rows);
      say(t('account.saved'));
      onSaved();
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={(event) => void save(event)}>
      <ol class="label-limits">
        {rows.map((row, place) => (
          <li key={row.label}>
            <span class="label">{row.label}</span>
            <select
              aria-label={text('labelLimits.of', { label: row.label })}
              value={row.purposeUuid}
              onChange={({ currentTarget }) => change(place, currentTarget.value)}
            >
              {!purposes.some(({ uuid }) => uuid === row.purposeUuid) && (
                <option value={row.purposeUuid}>{text('labelLimits.gone')}</option>
              )}
              {purposes.map(({ uuid, name }) => (
                <option key={uuid} value={uuid}>
                  {name || t('profile.unnamed')}
                </option>
              ))}
            </select>
            <button
              type="button"
              class="button"
              aria-label={text('labelLimits.remove', { label: row.label })}
              onClick={() => setRows(rows.filter((_, n) => n !== place))}
            >
              <Icon name="bin" />
            </button>
          </li>
        ))}
      </ol>
      <div class="with-button">
        <input
          value={label}
          list={known}
          maxLength={64}
          autocomplete="off"
          aria-label={t('act.label.which')}
          placeholder={t('act.label.which')}
          onInput={({ currentTarget }) => setLabel(currentTarget.value)}
        />
        <button type="button" class="button" disabled={label.trim() === ''} onClick={add}>
          {text('labelLimits.add')}
        </button>
      </div>
      <datalist id={known}>
        {labels.map((each) => (
          <option key={each.label} value={each.label} />
        ))}
      </datalist>
      {error !== null && <Problem error={error} />}
      <div>
        <button type="submit" class="button button-main" disabled={!isChanged || isBusy}>
          {t('account.save')}
        </button>
      </div>
    </form>
  );
}
