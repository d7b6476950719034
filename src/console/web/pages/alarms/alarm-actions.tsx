import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { reload } from '../../api/cache.ts';
import { muteDevice, unmuteDevice } from '../../api/devices.ts';
import {
  acknowledgeAlarm,
  closeAlarm,
  reopenAlarm,
  snoozeAlarm,
  unsnoozeAlarm,
} from '../../api/events.ts';
import { ApiError } from '../../api/request.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { readOpenAlarms } from '../../app/stream.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { type AskedQuiet, type Quiet, QuietFields, quietFromNow } from '../../parts/form.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { sayHolding } from './about.ts';

type Act = 'acknowledge' | 'note' | 'close' | 'snooze' | 'unsnooze' | 'mute' | 'unmute';

type ActionsProps = {
  alarm: ListedAlarm;
  /** The element that says which alarm it is; a screen reader reads it with each button. */
  describedBy: string;
  latest: readonly LatestView[] | undefined;
};

/** What a person can do about an alarm; the page shows the result at once. */
export function AlarmActions({ alarm, describedBy, latest }: ActionsProps) {
  const [asking, setAsking] = useState<'snooze' | 'mute' | 'close' | 'note' | null>(null);
  /** What the service refused to close it for: the newest values, which the page may not know yet. */
  const [holding, setHolding] = useState<ListedAlarm['values']>([]);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const { alarmId, deviceAuthUuid: uuid, state, snoozed, muted } = alarm;
  const { why, measured } = sayHolding({ ...alarm, values: holding }, latest);
  const run = async (act: Act, work: () => Promise<unknown>, undo?: () => Promise<unknown>) => {
    if (isBusy) return;
    setError(null);
    setAsking(null);
    setBusy(true);
    try {
      await work();
      say(t(`alarms.done.${act}`), undo && { forMs: undoMs, run: undo });
    } catch (thrown) {
      const values = holdingOf(thrown);
      if (values) setHolding(values);
      if (values) setAsking('close');
      else setError(thrown);
    }
    setBusy(false);
    reload('alarms/');
    reload(`device/${uuid}`);
    await readOpenAlarms();
  };
  const quiet = (body: Quiet) =>
    asking === 'snooze'
      ? run('snooze', () => snoozeAlarm(alarmId, body))
      : run('mute', () => muteDevice(uuid, body));
  const close = (how: { note?: string; force?: boolean }) =>
    run(
      'close',
      () => closeAlarm(alarmId, how),
      async () => {
        await reopenAlarm(alarmId);
        reload('alarms/');
        await readOpenAlarms();
      },
    );
  const button = (act: Exclude<Act, 'note'>, onClick: () => void) => (
    <button
      // The button that ends a snooze takes the place of the one that began it, so it keeps the focus.
      key={act.replace('un', '')}
      type="button"
      class={act === 'acknowledge' ? 'button button-soft' : 'button'}
      aria-describedby={describedBy}
      aria-disabled={isBusy}
      onClick={onClick}
    >
      {t(`alarms.${act}`)}
    </button>
  );
  return (
    <div class="alarm-actions">
      {state === 'open' &&
        button('acknowledge', () => void run('acknowledge', () => acknowledgeAlarm(alarmId)))}
      {state !== 'closed' && (
        <>
          {snoozed
            ? button('unsnooze', () => void run('unsnooze', () => unsnoozeAlarm(alarmId)))
            : button('snooze', () => setAsking('snooze'))}
          {muted
            ? button('unmute', () => void run('unmute', () => unmuteDevice(uuid)))
            : button('mute', () => setAsking('mute'))}
          {button('close', () => void close({}))}
        </>
      )}
      <button
        type="button"
        class="link"
        aria-describedby={describedBy}
        onClick={() => setAsking('note')}
      >
        {t(state === 'open' ? 'alarms.withNote' : 'alarms.addNote')}
      </button>
      {error !== null && <Problem error={error} />}
      {asking === 'close' && (
        <NoteDialog
          title={t('alarms.closeTitle')}
          action={t('alarms.closeAnyway')}
          hint={[why, measured, t('alarms.closeHint')].filter(Boolean).join(' ')}
          onCancel={() => setAsking(null)}
          onSend={(note) => void close({ force: true, ...(note ? { note } : {}) })}
        />
      )}
      {asking === 'note' && (
        <NoteDialog
          title={t(state === 'open' ? 'alarms.acknowledge' : 'alarms.addNote')}
          action={t(state === 'open' ? 'alarms.acknowledge' : 'alarms.addNote')}
          hint={t('alarms.noteHint')}
          isRequired={state !== 'open'}
          onCancel={() => setAsking(null)}
          // A note with an acknowledgement that changes nothing is kept all the same.
          onSend={(note) =>
            void run(state === 'open' ? 'acknowledge' : 'note', () =>
              acknowledgeAlarm(alarmId, note),
            )
          }
        />
      )}
      {(asking === 'snooze' || asking === 'mute') && (
        <QuietDialog
          {...askQuiet(asking, alarm)}
          onCancel={() => setAsking(null)}
          onQuiet={(body) => void quiet(body)}
        />
      )}
    </div>
  );
}

/** How long the service takes back that an alarm was closed. */
const undoMs = 60_000;

const holdingOf = (error: unknown) =>
  error instanceof ApiError && error.code === 'condition-holds' ? error.values : null;

type NoteProps = {
  title: string;
  action: string;
  hint: string;
  /** The note is all that is sent. */
  isRequired?: boolean;
  /** Above the note. */
  children?: ComponentChildren;
  onCancel: () => void;
  onSend: (note: string) => void;
};

/** Asks for a note: what was found, what was done. It may stay empty, unless it is all that is sent. */
export function NoteDialog(props: NoteProps) {
  const { title, action, hint, isRequired = false, children, onCancel, onSend } = props;
  const [note, setNote] = useState('');
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    onSend(note.trim());
  };
  return (
    <Dialog title={title} onClose={onCancel}>
      <form class="form" onSubmit={send}>
        {children}
        <p>{hint}</p>
        <label class="field">
          <span>{t(isRequired ? 'alarms.noteOnly' : 'alarms.note')}</span>
          <input
            name="note"
            required={isRequired}
            pattern={isRequired ? '.*\\S.*' : undefined}
            value={note}
            maxLength={1_000}
            autocomplete="off"
            onInput={({ currentTarget }) => setNote(currentTarget.value)}
          />
        </label>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** What the dialog says of one alarm, or of its device. */
function askQuiet(what: 'snooze' | 'mute', { eventName: name, deviceName }: ListedAlarm) {
  const device = deviceName || t('fleet.unnamed');
  return what === 'snooze'
    ? {
        title: t('quiet.snoozeTitle', { name }),
        hint: t('quiet.snoozeHint', { device }),
        action: t('alarms.snooze'),
      }
    : {
        title: t('quiet.muteTitle', { device }),
        hint: t('quiet.muteHint'),
        action: t('alarms.mute'),
      };
}

type QuietProps = {
  title: string;
  hint?: string;
  action: string;
  onCancel: () => void;
  onQuiet: (quiet: Quiet) => void;
};

/** For how long notifications are suppressed, and why. */
export function QuietDialog({ title, hint, action, onCancel, onQuiet }: QuietProps) {
  const [quiet, setQuiet] = useState<AskedQuiet>();
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (quiet) onQuiet(quietFromNow(quiet));
  };
  return (
    <Dialog title={title} onClose={onCancel}>
      <form class="form" onSubmit={send}>
        {hint && <p class="fine">{hint}</p>}
        <QuietFields onChange={setQuiet} />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
