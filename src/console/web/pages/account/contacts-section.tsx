import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { getContacts, removePushTokens, replaceContacts, tryContacts } from '../../api/account.ts';
import { reload, useQuery } from '../../api/cache.ts';
import type { Contacts, TrialAnswer } from '../../api/types.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty, Problem, say } from '../../parts/panel.tsx';
import { count, t } from '../../text/t.ts';
import { ContactDialog } from './contact-dialog.tsx';
import { ContactRow, entriesOf, type Entry, listsOf, type Trial } from './contact-row.tsx';

/** Who receives the account's messages, and whether they arrive. */
export function ContactsSection() {
  const trial = useTrial();
  const query = useQuery('account/contacts', getContacts, {
    everyMs: trial.isWaiting ? 1_000 : 5_000,
  });
  const [editing, setEditing] = useState<Entry | 'new' | null>(null);
  const [removing, setRemoving] = useState<Entry | null>(null);
  /** Changes the current lists, not those from when the page was opened. */
  const change = async (by: (entries: Entry[]) => Entry[]) => {
    await replaceContacts(listsOf(by(entriesOf(await getContacts()))));
    query.reload();
  };
  const remove = async ({ address }: Entry) => {
    await change((entries) => entries.filter((each) => each.address !== address));
    setRemoving(null);
    say(t('contacts.removed'));
  };
  return (
    <>
      <Answered query={query}>
        {(contacts) => (
          <>
            <List contacts={contacts} onEdit={setEditing} onRemove={setRemoving} trial={trial} />
            <Channels contacts={contacts} />
          </>
        )}
      </Answered>
      {editing !== null && (
        <ContactDialog
          entry={editing === 'new' ? null : editing}
          known={query.data ? entriesOf(query.data) : []}
          hasMail={query.data?.channels.email ?? true}
          onClose={() => setEditing(null)}
          onSave={async (entry) => {
            await change((entries) => [
              ...entries.filter((each) => each.address !== entry.address),
              entry,
            ]);
            setEditing(null);
          }}
        />
      )}
      {removing !== null && (
        <Confirm
          title={t('contacts.removeTitle', { address: removing.address })}
          action={t('contacts.remove')}
          onCancel={() => setRemoving(null)}
          onConfirm={() => remove(removing)}
        >
          <p class="fine">{t('contacts.removeHint')}</p>
        </Confirm>
      )}
    </>
  );
}

type ListProps = {
  contacts: Contacts;
  onEdit: (entry: Entry | 'new') => void;
  onRemove: (entry: Entry) => void;
  trial: ReturnType<typeof useTrial>;
};

function List({ contacts, onEdit, onRemove, trial }: ListProps) {
  const entries = entriesOf(contacts);
  const add = (
    <button type="button" class="button button-main" onClick={() => onEdit('new')}>
      <Icon name="plus" />
      {t('contacts.add')}
    </button>
  );
  if (entries.length === 0)
    return (
      <section class="panel">
        <Empty
          icon="alarm"
          title={t('contacts.none')}
          hint={t(contacts.channels.email ? 'contacts.noneHint' : 'contacts.noneNoMail')}
        >
          {add}
        </Empty>
      </section>
    );
  return (
    <section class="panel panel-flush">
      <ul class="rows">
        {entries.map((entry) => (
          <ContactRow
            key={entry.address}
            entry={entry}
            trial={trial.of(entry)}
            hasMail={contacts.channels.email}
            onEdit={() => onEdit(entry)}
            onRemove={() => onRemove(entry)}
          />
        ))}
      </ul>
      <TrialPanel trial={trial} entries={entries}>
        {add}
      </TrialPanel>
    </section>
  );
}

type TrialState = {
  isWaiting: boolean;
  error: unknown;
  send: () => void;
  of: (entry: Entry) => Trial;
  hasArrived: (entries: Entry[]) => boolean;
};

/** A test message to all contacts; shows the outcome of each as it happens. */
function useTrial(): TrialState {
  const [answer, setAnswer] = useState<TrialAnswer | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const of = ({ address }: Entry): Trial => {
    const found = answer?.messages.find((each) => (each.address ?? each.url) === address);
    if (!found || !answer) return null;
    const heldBack = found.state === 'held-back' ? (found.reason ?? 'fault') : null;
    return { sentTs: answer.timestamp, type: found.type, heldBack };
  };
  const run = async () => {
    setError(null);
    setIsWaiting(true);
    try {
      setAnswer(await tryContacts());
    } catch (thrown) {
      setError(thrown);
    }
    setIsWaiting(false);
    reload('account/contacts');
  };
  return {
    isWaiting,
    error,
    of,
    send: () => void run(),
    hasArrived: (entries) =>
      entries.every((entry) => {
        const trial = of(entry);
        return trial === null || trial.heldBack || (entry.last?.timestamp ?? 0) >= trial.sentTs;
      }),
  };
}

type PanelProps = { trial: TrialState; entries: Entry[]; children: ComponentChildren };

/** The button that sends a test message, beside the others for the list. */
function TrialPanel({ trial, entries, children }: PanelProps) {
  return (
    <div class="rows-foot">
      <Problem error={trial.error} />
      <div class="rows-buttons">
        {children}
        <button
          type="button"
          class="button"
          disabled={trial.isWaiting || !trial.hasArrived(entries)}
          onClick={trial.send}
        >
          {t('contacts.try')}
        </button>
      </div>
    </div>
  );
}

const names = ['email', 'webhook', 'push', 'sms'] as const;

/** Which channels this installation has, and what the others need. */
function Channels({ contacts: { channels, pushTokens } }: { contacts: Contacts }) {
  return (
    <section class="panel" aria-labelledby="channels">
      <h3 id="channels">{t('channels.title')}</h3>
      <ul class="channels">
        {names.map((name) => (
          <li key={name}>
            <span class={channels[name] ? 'tag tag-ok' : 'tag'}>
              {t(channels[name] ? 'channels.on' : 'channels.off')}
            </span>
            <div>
              <p>{t(`channels.${name}`)}</p>
              <p class="fine">{t(`channels.${name}.${channels[name] ? 'on' : 'off'}`)}</p>
              {name === 'push' && pushTokens > 0 && <Telephones number={pushTokens} />}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Tokens belong to the apps: here they can be removed together, and an app adds its own again. */
function Telephones({ number }: { number: number }) {
  const [isAsking, setIsAsking] = useState(false);
  const remove = async () => {
    await removePushTokens();
    setIsAsking(false);
    reload('account/contacts');
    say(t('channels.telephonesGone'));
  };
  return (
    <>
      <button type="button" class="link" onClick={() => setIsAsking(true)}>
        {count('channels.telephones', number)}
      </button>
      {isAsking && (
        <Confirm
          title={count('channels.telephones', number)}
          action={t('contacts.remove')}
          onCancel={() => setIsAsking(false)}
          onConfirm={remove}
        >
          <p class="fine">{t('channels.telephonesHint')}</p>
        </Confirm>
      )}
    </>
  );
}
