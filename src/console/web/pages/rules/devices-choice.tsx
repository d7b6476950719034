import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listDevices, listLabels, pageSize } from '../../api/devices.ts';
import { Problem } from '../../parts/panel.tsx';
import { formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { Tick } from './fields.tsx';
import { text } from './texts.ts';

/** A device that somebody chose. */
export type Chosen = { uuid: string; name: string };

/** The first devices of the account that match; `more`: there are others. */
export function useDevices({ search = '', label = '' } = {}) {
  return useQuery(`rule-devices/${search}/${label}`, async (signal) => {
    const { body, next } = await listDevices({ search, label }, signal);
    const devices = body.devices.map(({ uuid, name }): Chosen => ({
      uuid,
      name: name?.trim() || t('fleet.unnamed'),
    }));
    return { devices, hasMore: next !== null };
  });
}

type ChoiceProps = {
  legend: string;
  chosen: readonly Chosen[];
  onChange: (chosen: readonly Chosen[]) => void;
};

/** Ticks for devices, of a label or with some letters in their names; what is ticked stays while others are listed. */
export function DevicesChoice({ legend, chosen, onChange }: ChoiceProps) {
  const [search, setSearch] = useState('');
  const [label, setLabel] = useState('');
  const { data: labels = [] } = useQuery('labels', listLabels);
  const { data, error } = useDevices({ search: search.trim(), label });
  const [before, setBefore] = useState(data);
  // The list stays while another one is asked for.
  if (data !== undefined && data !== before) setBefore(data);
  const { devices = [], hasMore = false } = data ?? before ?? {};
  const isChosen = ({ uuid }: Chosen) => chosen.some((each) => each.uuid === uuid);
  const others = devices.filter((device) => !isChosen(device));
  const hasAll = devices.length > 0 && others.length === 0;
  const isListed = ({ uuid }: Chosen) => devices.some((each) => each.uuid === uuid);
  const hidden = chosen.filter((each) => !isListed(each));
  // Nobody has chosen it: a page begins with one device.
  const isUntouched = chosen.length === 1 && hidden.length === 1;
  // Among a few devices nobody searches.
  const canSearch = hasMore || devices.length > 8 || search !== '' || label !== '';
  return (
    <fieldset class="groups devices-choice">
      <legend>{legend}</legend>
      {canSearch && (
        <div class="sentence">
          <input
            type="search"
            aria-label={text('devices.search')}
            placeholder={text('devices.search')}
            value={search}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
          {labels.length > 0 && (
            <select
              aria-label={t('fleet.label')}
              value={label}
              onChange={({ currentTarget }) => setLabel(currentTarget.value)}
            >
              <option value="">{t('fleet.anyLabel')}</option>
              {labels.map((each) => (
                <option key={each.label} value={each.label}>
                  {each.label}
                </option>
              ))}
            </select>
          )}
        </div>
      )}
      {error !== undefined && <Problem error={error} />}
      {devices.length > 1 && (
        <Tick
          label={text('install.all')}
          checked={hasAll}
          onChange={() => onChange(hasAll ? hidden : [...(isUntouched ? [] : chosen), ...others])}
        />
      )}
      <div class="devices-list">
        {devices.map((device) => (
          <Tick
            key={device.uuid}
            label={device.name}
            checked={isChosen(device)}
            onChange={(isOn) =>
              onChange(
                isOn ? [...chosen, device] : chosen.filter(({ uuid }) => uuid !== device.uuid),
              )
            }
          />
        ))}
      </div>
      <p class="fine" role="status">
        {text('devices.chosen', { count: formatNumber(chosen.length) })}{' '}
        {hidden.length > 0 &&
          text('devices.hidden', { names: hidden.map(({ name }) => name).join(', ') })}{' '}
        {hasMore && text('devices.more', { count: formatNumber(pageSize) })}
      </p>
    </fieldset>
  );
}
