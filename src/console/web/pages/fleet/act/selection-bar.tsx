import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import type { FleetFilter, ListedDevice } from '../../../api/devices.ts';
import { Problem } from '../../../parts/panel.tsx';
import { count, t } from '../../../text/t.ts';
import { begin } from '../jobs.tsx';
import { clearSelection, countSelected, selectAll, selection, toTarget } from '../fleet-table.tsx';
import type { ActionDialogProps } from './action-dialog.tsx';

type DialogOf = ComponentType<ActionDialogProps & { what: Name }>;

const acts = ['label', 'unlabel', 'mute', 'unmute', 'remove'] as const;
type Name = Exclude<(typeof acts)[number], 'unmute'>;

type BarProps = { filter: FleetFilter; devices: readonly ListedDevice[]; matching: number };

/** How many devices are selected, what can be done with them, and a button to select all matching ones. */
export function SelectionBar({ filter, devices, matching }: BarProps) {
  const [asking, setAsking] = useState<{ what: Name; Dialog: DialogOf } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { value: selected } = selection;
  const number = countSelected(selected, matching);
  if (number === 0) return null;
  const ask = async (what: Name) => {
    setError(null);
    try {
      setAsking({ what, Dialog: (await import('./action-dialog.tsx')).ActionDialog });
    } catch (thrown) {
      setError(thrown);
    }
  };
  const unmute = async () => {
    setError(null);
    try {
      await begin({ action: 'unmute', ...toTarget(selected) });
      clearSelection();
    } catch (thrown) {
      setError(thrown);
    }
  };
  const isWholePage =
    selected.kind === 'some' && devices.every(({ uuid }) => selected.names.has(uuid));
  return (
    <section class="selection" aria-label={t('fleet.selection')}>
      <p class="selection-count" role="status">
        {selected.kind === 'all'
          ? count('fleet.allSelected', number)
          : count('fleet.selected', number)}
      </p>
      {isWholePage && matching > number && (
        <button type="button" class="link" onClick={() => selectAll(filter)}>
          {count('fleet.selectAll', matching)}
        </button>
      )}
      <div class="selection-actions">
        {acts.map((what) => (
          <button
            key={what}
            type="button"
            class={what === 'remove' ? 'button button-bad' : 'button'}
            onClick={() => void (what === 'unmute' ? unmute() : ask(what))}
          >
            {t(`act.${what}`)}
          </button>
        ))}
        <button type="button" class="link" onClick={clearSelection}>
          {t('act.clear')}
        </button>
      </div>
      {error !== null && <Problem error={error} />}
      {asking && (
        <asking.Dialog what={asking.what} number={number} onClose={() => setAsking(null)} />
      )}
    </section>
  );
}
