import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import type { FleetFilter, ListedDevice } from '../../../api/devices.ts';
import { Problem } from '../../../parts/panel.tsx';
import { count, t } from '../../../text/t.ts';
import { begin } from '../jobs.tsx';
import { clearSelection, countSelected, selectAll, selection, toTarget } from '../fleet-table.tsx';
import type { ActionDialogProps } from './action-dialog.tsx';

const acts = ['label', 'unlabel', 'mute', 'unmute', 'limits', 'profile', 'remove'] as const;
type Name = Exclude<(typeof acts)[number], 'unmute'>;

/** What asks for what an action needs; its script is loaded when it is opened. */
async function loadDialog(what: Name): Promise<ComponentType<ActionDialogProps>> {
  if (what === 'limits') return (await import('./limits-dialog.tsx')).LimitsDialog;
  if (what === 'profile') return (await import('./profile-dialog.tsx')).ProfileDialog;
  const { ActionDialog } = await import('./action-dialog.tsx');
  return (props) => <ActionDialog {...props} what={what} />;
}

type BarProps = { filter: FleetFilter; devices: readonly ListedDevice[]; matching: number };

/** How many devices are selected, what can be done with them, and a button to select all matching ones. */
export function SelectionBar({ filter, devices, matching }: BarProps) {
  const [Asking, setAsking] = useState<ComponentType<ActionDialogProps> | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { value: selected } = selection;
  const number = countSelected(selected, matching);
  if (number === 0) return null;
  const ask = async (what: Name) => {
    setError(null);
    try {
      const Dialog = await loadDialog(what);
      // A function would be called for the next state.
      setAsking(() => Dialog);
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
      {Asking && <Asking number={number} onClose={() => setAsking(null)} />}
    </section>
  );
}
