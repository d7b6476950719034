import { useState } from 'preact/hooks';
import { getContacts, replaceContacts } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { Contacts } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { say } from '../../parts/toast.tsx';
import { t } from '../../text/t.ts';
import { Channels } from './channels.tsx';
import { ContactDialog } from './contact-dialog.tsx';
import { ContactRow } from './contact-row.tsx';
import { entriesOf, listsOf, type Entry } from './contact-lists.ts';
import { TrialPanel, useTrial } from './trial.tsx';

/** Whom the account's messages go to, and whether they arrive. */
export function ContactsSection() {
  const trial = useTrial();
  const query = useQuery('account/contacts', getContacts, {
    everyMs: trial.isWaiting ? 1_000 : 5_000,
  });
  const [editing, setEditing] = useState<Entry | 'new' | null>(null);
  const [removing, setRemoving] = useState<Entry | null>(null);
  /** The lists are replaced as they are now, not as they were when the page was opened. */
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
