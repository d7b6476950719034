import { useState } from 'preact/hooks';
import { listKeys, makeKey, revokeKey } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { ApiError } from '../../api/request.ts';
import type { ApiKey, MadeKey } from '../../api/types.ts';
import { clock, now } from '../../app/now.ts';
import { CopyText } from '../../parts/copy.tsx';
import { Confirm, Dialog } from '../../parts/dialog.tsx';
import { Field, Form, isWrong, type Refusal, Submit, textOf, useForm } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Answered, Empty, say } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { labelsIn } from './contact-dialog.tsx';

/** Keys for programs: created, shown once, and revoked. */
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

/** Shows the key, which is possible only once: it is stored nowhere. */
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

const dayMs = 86_400_000;
const lives = [30, 90, 365, 0] as const;

type DialogProps = { onClose: () => void; onMade: (key: MadeKey & { name: string }) => void };

/** What a key may do, with which devices, and until when. */
function KeyDialog({ onClose, onMade }: DialogProps) {
  const form = useForm(async (values) => {
    const name = textOf(values, 'name').trim();
    const days = Number(textOf(values, 'days'));
    const made = await makeKey({
      name,
      scopes: values.getAll('scopes') as Scope[],
      labels: labelsIn(textOf(values, 'labels')),
      ...(days > 0 ? { expiresTs: now() + days * dayMs } : {}),
    });
    onMade({ ...made, name });
  }, explain);
  const wrongScopes = form.refusal?.field === 'scopes' ? form.refusal.text : '';
  return (
    <Dialog title={t('keys.make')} onClose={onClose}>
      <Form form={form}>
        <Field
          form={form}
          name="name"
          label={t('keys.name')}
          hint={t('keys.nameHint')}
          input={{ required: true, maxLength: 200, autocomplete: 'off' }}
        />
        <fieldset
          class="scopes"
          aria-invalid={wrongScopes === '' ? undefined : 'true'}
          tabIndex={-1}
        >
          <legend>{t('keys.scopes')}</legend>
          {wrongScopes !== '' && (
            <p class="field-wrong" role="alert">
              {wrongScopes}
            </p>
          )}
          {scopes.map((scope) => (
            <label key={scope} class="check">
              <input
                type="checkbox"
                name="scopes"
                value={scope}
                defaultChecked={scope === 'devices:read' || scope === 'data:read'}
              />
              <span>
                {scopeText(scope)}
                <span class="fine">{scopeHint(scope)}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          <span>{t('keys.life')}</span>
          <select name="days">
            {lives.map((days) => (
              <option key={days} value={days} selected={days === 365}>
                {t(`keys.days.${days}`)}
              </option>
            ))}
          </select>
        </label>
        <Field
          form={form}
          name="labels"
          label={t('contacts.labels')}
          hint={t('contacts.labelsHint')}
          input={{ autocomplete: 'off' }}
        />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <Submit form={form}>{t('keys.makeThis')}</Submit>
        </div>
      </Form>
    </Dialog>
  );
}

function explain(error: ApiError): Refusal | null {
  if (isWrong(error, 'scopes')) return { field: 'scopes', text: t('keys.noScope') };
  if (isWrong(error, 'labels')) return { field: 'labels', text: t('contacts.badLabels') };
  if (isWrong(error, 'name')) return { field: 'name', text: t('keys.badName') };
  return null;
}

type Scope = ApiKey['scopes'][number];

/** In the order in which they are offered. */
const scopes: Scope[] = [
  'devices:read',
  'data:read',
  'alarms:read',
  'purposes:read',
  'devices:write',
  'data:write',
  'alarms:write',
  'purposes:write',
  'commands:read',
  'commands:write',
];

const stem = (scope: Scope) => scope.replace(':', '.') as `${Area}.${'read' | 'write'}`;
type Area = 'devices' | 'data' | 'alarms' | 'purposes' | 'commands';

const scopeText = (scope: Scope): string => t(`scope.${stem(scope)}`);
const scopeHint = (scope: Scope): string => t(`scope.${stem(scope)}.hint`);
