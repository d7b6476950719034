import { useQuery } from '../../api/cache.ts';
import { getConfiguration, sensesOf } from '../../api/devices.ts';
import type { Sense } from '../../api/types.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { useDevices } from './devices-choice.tsx';
import { text } from './texts.ts';

/** The sensors that the rule is written for: those of the device that the URL names, or of the first one. */
export function useSenses(uuid: string): ReadonlyMap<string, Sense> {
  const { data } = useQuery(`rule-senses/${uuid}`, async (signal) =>
    uuid === '' ? new Map<string, Sense>() : sensesOf(await getConfiguration(uuid, signal)),
  );
  return data ?? new Map<string, Sense>();
}

/** The device that the URL names, or the first one; empty: there is none. */
export function useSample(): string {
  const asked = queryOf('device');
  const { data } = useDevices();
  return asked === '' ? (data?.devices[0]?.uuid ?? '') : asked;
}

/** Whose sensors, units and values the page shows; the rule itself belongs to no device. */
export function SampleDevice() {
  const { devices } = useDevices().data ?? { devices: [] };
  const uuid = useSample();
  if (devices.length === 0) return null;
  return (
    <label class="field">
      <span>{text('rules.sample')}</span>
      <select
        value={uuid}
        onChange={({ currentTarget }) =>
          setQuery({ device: currentTarget.value }, { replace: true })
        }
      >
        {devices.every((device) => device.uuid !== uuid) && <option value={uuid}>{uuid}</option>}
        {devices.map((device) => (
          <option key={device.uuid} value={device.uuid}>
            {device.name}
          </option>
        ))}
      </select>
    </label>
  );
}
