import { useRef, useState } from 'preact/hooks';
import { deleteAccount, getUsage } from '../../api/account.ts';
import { useQuery } from '../../api/cache.ts';
import type { ApiError } from '../../api/request.ts';
import { signIn } from '../../api/session.ts';
import { accountOf, forgetSession } from '../../app/session.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Form, Submit } from '../../parts/form.tsx';
import { PasswordField } from '../../parts/password-field.tsx';
import { textOf, useForm, type Refusal } from '../../parts/use-form.ts';
import { formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** Deletes the account: its password is asked for, which a browser may fill in, and then once more. */
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
    // The route takes no password: signing in once more shows that it is known.
    await signIn({ email, password: textOf(values, 'password') });
    await deleteAccount();
    await forgetSession();
  }, explain);
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

function explain({ status }: ApiError): Refusal | null {
  return status === 401 ? { field: 'password', text: t('account.wrongPassword') } : null;
}
