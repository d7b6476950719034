import { useQuery } from '../../api/cache.ts';
import { listLabels } from '../../api/jobs.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** The labels that devices have, and how many have each. */
export const useLabels = () => useQuery('labels', listLabels);

/** Only devices with a label; absent where there are no labels. */
export function LabelFilter() {
  const { data: labels = [] } = useLabels();
  const chosen = queryOf('label');
  if (labels.length === 0 && chosen === '') return null;
  const isKnown = chosen === '' || labels.some(({ label }) => label === chosen);
  return (
    <label class="label-filter">
      <span class="hidden">{t('fleet.label')}</span>
      <select
        value={chosen}
        onChange={({ currentTarget }) =>
          setQuery({ label: currentTarget.value, cursor: '', from: '' })
        }
      >
        <option value="">{t('fleet.anyLabel')}</option>
        {!isKnown && <option value={chosen}>{chosen}</option>}
        {labels.map(({ label, devices }) => (
          <option key={label} value={label}>
            {`${label} (${formatNumber(devices)})`}
          </option>
        ))}
      </select>
    </label>
  );
}
