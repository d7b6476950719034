import { useRef, useState } from 'preact/hooks';
import { changeAccount, deleteAccount, getUsage, signIn } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { ApiError } from '../../api/request.ts';
import { clock } from '../../app/now.ts';
import { Preferences } from '../../app/preferences.tsx';
import { accountOf, changeSessionAccount, forgetSession } from '../../app/session.ts';
import { Dialog } from '../../parts/dialog.tsx';
import {
  Field,
  Form,
  isWrong,
  PasswordField,
  type Refusal,
  Submit,
  textOf,
  useForm,
} from '../../parts/form.tsx';
import { say } from '../../parts/panel.tsx';
import { formatFullTime, formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** The account's name, language, time zone and theme. */
export function ProfileSection() {
  const account = accountOf();
  const form = useForm(async (values) => {
    const change = {
      name: textOf(values, 'name').trim(),
      timeZone: textOf(values, 'timeZone').trim(),
    };
    await changeAccount(change);
    changeSessionAccount(change);
    say(t('account.saved'));
  }, explain);
  return (
    <>
      <section class="panel">
        <Form form={form}>
          <Field
            form={form}
            name="name"
            label={t('account.name')}
            hint={t('account.nameHint')}
            input={{ defaultValue: account?.name ?? '', autocomplete: 'name', maxLength: 200 }}
          />
          <TimeZone form={form} />
          <div>
            <Submit form={form}>{t('account.save')}</Submit>
          </div>
        </Form>
      </section>
      <section class="panel" aria-label={t('account.look')}>
        <Preferences />
        <p class="fine account-note">{t('account.lookHint')}</p>
      </section>
    </>
  );
}

function TimeZone({ form }: { form: ReturnType<typeof useForm> }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const kept = accountOf()?.timeZone ?? 'UTC';
  const [zone, setZone] = useState(kept);
  return (
    <>
      <Field
        form={form}
        name="timeZone"
        label={t('account.timeZone')}
        hint={t('account.timeZoneHint', { time: formatFullTime(clock.value) })}
        input={{
          value: zone,
          onInput: ({ currentTarget }) => setZone(currentTarget.value),
          list: 'time-zones',
          autocomplete: 'off',
          spellcheck: false,
          required: true,
          maxLength: 64,
        }}
      >
        {zone !== own && (
          <button type="button" class="button" onClick={() => setZone(own)}>
            {t('account.ownZone')}
          </button>
        )}
      </Field>
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

function explain(error: ApiError): Refusal | null {
  return isWrong(error, 'timeZone') ? { field: 'timeZone', text: t('account.badZone') } : null;
}

/** Deletes the account. It asks for the password, which a browser may fill in, and then once more. */
export function DeleteSection() {
  const email = accountOf()?.email ?? '';
  const { data: usage = [] } = useQuery('account/usage', getUsage);
  const [isAsking, setIsAsking] = useState(false);
  const decide = useRef<(isSure: boolean) => void>(() => undefined);
  const close = (isSure: boolean) => {
    setIsAsking(false);
    decide.current(isSure);
  };
  const form = useForm(async (values) => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    decide.current = resolve;
    setIsAsking(true);
    if (!(await promise)) return;
    // The route takes no password: signing in again proves that it is known.
    await signIn({ email, password: textOf(values, 'password') });
    await deleteAccount();
    await forgetSession();
  }, explainDeletion);
  const numberOf = (quota: string) =>
    formatNumber(usage.find((each) => each.quota === quota)?.used ?? 0);
  return (
    <section class="panel">
      <p>{t('delete.what', { email })}</p>
      <ul class="delete-list">
        <li>{t('delete.devices', { count: numberOf('devices') })}</li>
        <li>{t('delete.history')}</li>
        <li>{t('delete.purposes', { count: numberOf('purposes') })}</li>
        <li>{t('delete.access', { keys: numberOf('keys'), contacts: numberOf('contacts') })}</li>
      </ul>
      <p class="delete-warn">{t('delete.warn')}</p>
      <Form form={form}>
        <input type="hidden" name="username" autocomplete="username" value={email} />
        <PasswordField form={form} label={t('signIn.password')} />
        <div class="danger">
          <Submit form={form}>{t('account.delete')}</Submit>
        </div>
      </Form>
      {isAsking && (
        <Dialog title={t('delete.sure', { email })} onClose={() => close(false)}>
          <p class="fine">{t('delete.warn')}</p>
          <div class="dialog-buttons">
            <button type="button" class="button" onClick={() => close(false)}>
              {t('common.cancel')}
            </button>
            <button type="button" class="button button-danger" onClick={() => close(true)}>
              {t('delete.forGood')}
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function explainDeletion({ status }: ApiError): Refusal | null {
  return status === 401 ? { field: 'password', text: t('account.wrongPassword') } : null;
}
