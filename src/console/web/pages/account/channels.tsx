import { useState } from 'preact/hooks';
import { removePushTokens } from '../../api/account.ts';
import { reload } from '../../api/cache.ts';
import type { Contacts } from '../../api/types.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { say } from '../../parts/toast.tsx';
import { count, t } from '../../text/t.ts';

const names = ['email', 'webhook', 'push', 'sms'] as const;

/** Which ways of telling somebody this installation has, and what the others need. */
export function Channels({ contacts: { channels, pushTokens } }: { contacts: Contacts }) {
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

/** Tokens are the apps' own: they can be removed here, together, and an app adds its own again. */
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
