import { useState } from 'preact/hooks';
import { listKeys, revokeKey } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { ApiKey, MadeKey } from '../../api/types.ts';
import { clock } from '../../app/now.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { CopyText } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { say } from '../../parts/toast.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { KeyDialog } from './key-dialog.tsx';
import { scopeText } from './scopes.ts';

/** Keys for programs: made, shown once, and revoked. */
export function KeysSection() {
  const query = useQuery('account/keys', listKeys);
  const [isMaking, setIsMaking] = useState(false);
  const [made, setMade] = useState<(MadeKey & { name: string }) | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const revoke = async ({ keyId }: ApiKey) => {
    await revokeKey(keyId);
    setRevoking(null);
    if (made?.keyId === keyId) setMade(null);
    query.reload();
    say(t('keys.revoked'));
  };
  const add = (
    <button type="button" class="button button-main" onClick={() => setIsMaking(true)}>
      <Icon name="plus" />
      {t('keys.make')}
    </button>
  );
  return (
    <>
      {made && <Made made={made} onDone={() => setMade(null)} />}
      <Answered query={query}>
        {(keys) =>
          keys.length === 0 ? (
            <section class="panel">
              <Empty icon="key" title={t('keys.none')} hint={t('keys.noneHint')}>
                {add}
              </Empty>
            </section>
          ) : (
            <section class="panel panel-flush">
              <ul class="rows">
                {keys.map((key) => (
                  <KeyRow key={key.keyId} entry={key} onRevoke={() => setRevoking(key)} />
                ))}
              </ul>
              <div class="rows-foot">{add}</div>
            </section>
          )
        }
      </Answered>
      {isMaking && (
        <KeyDialog
          onClose={() => setIsMaking(false)}
          onMade={(key) => {
            setIsMaking(false);
            setMade(key);
            query.reload();
          }}
        />
      )}
      {revoking && (
        <Confirm
          title={t('keys.revokeTitle', { name: revoking.name })}
          action={t('keys.revoke')}
          onCancel={() => setRevoking(null)}
          onConfirm={() => revoke(revoking)}
        >
          <p class="fine">{t('keys.revokeHint')}</p>
        </Confirm>
      )}
    </>
  );
}

/** The only time that the key is seen. It is kept nowhere but on the screen. */
function Made({
  made: { name, key },
  onDone,
}: {
  made: MadeKey & { name: string };
  onDone: () => void;
}) {
  return (
    <section class="panel panel-done made-key" role="status">
      <h3>{t('keys.made', { name })}</h3>
      <p>{t('keys.once')}</p>
      <CopyText text={key} label={t('keys.key')} />
      <p>
        <button type="button" class="button" onClick={onDone}>
          {t('keys.kept')}
        </button>
      </p>
    </section>
  );
}

function KeyRow({ entry, onRevoke }: { entry: ApiKey; onRevoke: () => void }) {
  const { name, scopes, labels, createdTs, expiresTs, lastUsedTs } = entry;
  const isOver = expiresTs !== null && expiresTs <= clock.value;
  return (
    <li class="row">
      <span class="row-icon">
        <Icon name="key" />
      </span>
      <div class="row-text">
        <p class="row-title">
          {name}
          {isOver && <span class="tag tag-warn">{t('keys.over')}</span>}
        </p>
        <p class="fine">{scopes.map(scopeText).join(' · ')}</p>
        <p class="fine">
          {labels.length > 0 && (
            <span class="row-part">{t('contacts.onlyLabels', { labels: labels.join(', ') })}</span>
          )}
          <span class="row-part">{t('keys.madeAt', { time: formatTime(createdTs) })}</span>
          <span class="row-part">
            {t('account.lastUsed')} <Ago ts={lastUsedTs} />
          </span>
          {!isOver && (
            <span class="row-part">
              {expiresTs === null
                ? t('keys.noEnd')
                : t('keys.until', { time: formatTime(expiresTs) })}
            </span>
          )}
        </p>
      </div>
      <button
        type="button"
        class="button"
        aria-label={t('keys.revokeTitle', { name })}
        onClick={onRevoke}
      >
        {t('keys.revoke')}
      </button>
    </li>
  );
}
