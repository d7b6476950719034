import { effect, signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { type AlarmAction, type AlarmFilter, walkAlarms } from '../../api/events.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { accountOf } from '../../app/session.ts';
import { type Quiet } from '../../parts/form.tsx';
import { lazyPart, Problem } from '../../parts/panel.tsx';
import { formatNumber } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { beginOnAlarms } from '../fleet/jobs.tsx';
import { whyOpen } from './about.ts';
import { NoteDialog, QuietDialog } from './alarm-actions.tsx';
import type { CloseProps } from './close-dialog.tsx';

const CloseDialog = lazyPart<CloseProps>(
  async () => (await import('./close-dialog.tsx')).CloseDialog,
);

/** The alarms to act on: named ones, also of other pages of the list, or all that its filter finds. */
type Selection =
  { kind: 'some'; alarms: ReadonlyMap<number, ListedAlarm> } | { kind: 'all'; filter: AlarmFilter };

const none: Selection = { kind: 'some', alarms: new Map() };
const selection = signal<Selection>(none);

export const clearPicked = (): void => void (selection.value = none);

/** They are dropped when somebody else signs in. */
effect(() => {
  accountOf();
  clearPicked();
});

export const isPicked = ({ alarmId }: ListedAlarm): boolean => {
  const { value } = selection;
  return value.kind === 'all' || value.alarms.has(alarmId);
};

/** Selects or deselects alarms. If all that match were selected, only those of `page` stay selected. */
export function pick(
  alarms: readonly ListedAlarm[],
  isOn: boolean,
  page: readonly ListedAlarm[],
): void {
  const { value } = selection;
  const byId = (of: readonly ListedAlarm[]) => of.map((each) => [each.alarmId, each] as const);
  const next = new Map(value.kind === 'some' ? value.alarms : byId(page));
  for (const [alarmId, alarm] of byId(alarms))
    if (isOn) next.set(alarmId, alarm);
    else next.delete(alarmId);
  selection.value = { kind: 'some', alarms: next };
}

/** Drops those of the selected alarms that are no longer in the list. */
export function dropPicked(isGone: (alarm: ListedAlarm) => boolean): void {
  const { value } = selection;
  if (value.kind === 'all') return;
  const left = [...value.alarms].filter(([, alarm]) => !isGone(alarm));
  if (left.length < value.alarms.size) selection.value = { kind: 'some', alarms: new Map(left) };
}

type BarProps = {
  /** Those of the page that can be selected. */
  page: readonly ListedAlarm[];
  /** What the list shows, and how many alarms that finds. */
  filter: AlarmFilter;
  total: number;
  latestOf: (alarm: ListedAlarm) => readonly LatestView[] | undefined;
};

/** How many alarms are selected, what can be done with them in one go, and a button that selects all that match. */
export function SelectionBar({ page, filter, total, latestOf }: BarProps) {
  const [asking, setAsking] = useState<'note' | 'snooze' | 'close' | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { value: chosen } = selection;
  const some = chosen.kind === 'some' ? [...chosen.alarms.values()] : null;
  const number = some ? some.length : total;
  if (number === 0) return null;
  const begin = async (action: Omit<AlarmAction, 'alarmIds' | 'filter'>) => {
    setAsking(null);
    setError(null);
    const which = some
      ? { alarmIds: some.map(({ alarmId }) => alarmId) }
      : chosen.kind === 'all' && { filter: chosen.filter };
    try {
      await beginOnAlarms({ ...action, ...which });
      clearPicked();
    } catch (thrown) {
      setError(thrown);
    }
  };
  const isAnyOpen = some ? some.some(({ state }) => state === 'open') : filter.state === 'open';
  const isWhole = some !== null && page.every(isPicked) && total > number;
  return (
    <section class="selection" aria-label={t('alarms.selection')}>
      <p class="selection-count" role="status">
        {some ? count('fleet.selected', number) : count('alarms.allSelected', number)}
      </p>
      <button type="button" class="link" onClick={clearPicked}>
        {t('act.clear')}
      </button>
      {isWhole && (
        <button
          type="button"
          class="link"
          onClick={() => (selection.value = { kind: 'all', filter })}
        >
          {count('alarms.selectAll', total)}
        </button>
      )}
      <div class="selection-actions">
        {isAnyOpen && (
          <button
            type="button"
            class="button button-soft"
            onClick={() =>
              number === 1 ? void begin({ action: 'acknowledge' }) : setAsking('note')
            }
          >
            {t('alarms.acknowledge')}
          </button>
        )}
        <button type="button" class="button" onClick={() => setAsking('snooze')}>
          {t('alarms.snooze')}
        </button>
        <button type="button" class="button" onClick={() => setAsking('close')}>
          {t('alarms.close')}
        </button>
        {isAnyOpen && number === 1 && (
          <button type="button" class="link" onClick={() => setAsking('note')}>
            {t('alarms.withNote')}
          </button>
        )}
      </div>
      {error !== null && <Problem error={error} />}
      {asking === 'note' && (
        <NoteDialog
          title={number === 1 ? t('alarms.withNote') : count('alarms.acknowledgeMany', number)}
          action={t('alarms.acknowledge')}
          hint={t(number === 1 ? 'alarms.noteHint' : 'alarms.acknowledgeHint')}
          onCancel={() => setAsking(null)}
          onSend={(note) => void begin({ action: 'acknowledge', ...(note ? { note } : {}) })}
        >
          {number > 1 && <HowBad some={some} filter={filter} />}
        </NoteDialog>
      )}
      {asking === 'close' && (
        <CloseDialog
          number={number}
          holding={some && some.filter((one) => whyOpen(one, latestOf(one)) !== '').length}
          onCancel={() => setAsking(null)}
          onClose={(how) => void begin({ action: 'close', ...how })}
        />
      )}
      {asking === 'snooze' && (
        <QuietDialog
          title={t('alarms.snooze')}
          action={t('alarms.snooze')}
          onCancel={() => setAsking(null)}
          onQuiet={(quiet: Quiet) => void begin({ action: 'snooze', ...quiet })}
        />
      )}
    </section>
  );
}

/** How severe alarms are, and how many are not over; of very many only the service knows. */
function HowBad({ some, filter }: { some: ListedAlarm[] | null; filter: AlarmFilter }) {
  const key = `how-bad/${JSON.stringify(some ? some.map(({ alarmId }) => alarmId) : filter)}`;
  const { data } = useQuery(key, async (signal) => some ?? (await walkAlarms(filter, signal)));
  if (!data) return null;
  const severities = (['critical', 'warning', 'info'] as const)
    .map((each) => ({ each, of: data.filter(({ severity }) => severity === each).length }))
    .filter(({ of }) => of > 0)
    .map(({ each, of }) => `${t(`severity.${each}`)}: ${formatNumber(of)}`);
  const holding = data.filter(({ overTs, endsTs }) => overTs === null && endsTs === null).length;
  return (
    <p>
      {severities.join(', ')}. {holding > 0 && count('alarms.closeHolding', holding)}
    </p>
  );
}
