import type { ListedDevice } from '../../api/devices.ts';
import type { LatestView } from '../../api/types.ts';
import { here } from '../../app/router.ts';
import { Link } from '../../parts/link.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { isSelected, select } from './selection.ts';
import { State } from './state.tsx';

type RowProps = { device: ListedDevice; values: LatestView[]; page: readonly ListedDevice[] };

export function Row({ device, values, page }: RowProps) {
  const { uuid, serial, labels, lastSeenTs } = device;
  const name = device.name || t('fleet.unnamed');
  const isOn = isSelected(uuid);
  return (
    <tr class={isOn ? 'is-selected' : undefined}>
      <td class="fleet-pick">
        <label class="pick">
          <input
            type="checkbox"
            checked={isOn}
            aria-label={t('fleet.select', { name })}
            onChange={({ currentTarget }) => select([device], currentTarget.checked, page)}
          />
        </label>
      </td>
      <th scope="row" class="fleet-name">
        <Link to={`devices/${uuid}`} class="row-link">
          {name}
        </Link>
        {serial && <span class="fine">{serial}</span>}
      </th>
      <td class="fleet-state">
        <State device={device} />
      </td>
      <td class="fleet-values">
        {values.slice(0, 3).map(({ sId, val, name, unit, decimals }) => (
          <span key={sId} class="fleet-value" title={name ?? sId}>
            {unit === undefined && <span class="fine">{name ?? sId} </span>}
            {formatValue(val, { unit, decimals })}
          </span>
        ))}
      </td>
      <td class="fleet-seen">{lastSeenTs !== null && <Ago ts={lastSeenTs} />}</td>
      <td class="fleet-labels">
        {labels.map((label) => (
          <Link key={label} to={withLabel(label)} class="label">
            {label}
          </Link>
        ))}
      </td>
    </tr>
  );
}

function withLabel(label: string): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of ['cursor', 'from']) query.delete(name);
  query.set('label', label);
  return `?${query.toString()}`;
}
