import { useState } from 'preact/hooks';
import { changeEmail, changePassword } from '../../api/account.ts';
import type { ApiError } from '../../api/request.ts';
import { accountOf, enter, session } from '../../app/session.ts';
import {
  emailInput,
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
import { t } from '../../text/t.ts';

/** The account's password and e-mail address. */
export function AccessSection() {
  return (
    <>
      <PasswordPanel />
      <EmailPanel />
    </>
  );
}

function PasswordPanel() {
  const email = accountOf()?.email ?? '';
  const form = useForm(async (values, element) => {
    const newPassword = textOf(values, 'newPassword');
    await changePassword({ oldPassword: textOf(values, 'oldPassword'), newPassword });
    // All sessions have ended, including this one.
    await enter({ email, password: newPassword });
    element.reset();
    say(t('account.passwordChanged'));
  }, explainPassword);
  return (
    <section class="panel" aria-labelledby="change-password">
      <h3 id="change-password">{t('account.changePassword')}</h3>
      <p class="fine account-note">{t('account.changePasswordHint')}</p>
      <Form form={form}>
        <input type="hidden" name="username" autocomplete="username" value={email} />
        <PasswordField form={form} name="oldPassword" label={t('account.oldPassword')} />
        <PasswordField form={form} name="newPassword" label={t('account.newPassword')} isNew />
        <div>
          <Submit form={form}>{t('account.changePassword')}</Submit>
        </div>
      </Form>
    </section>
  );
}

function explainPassword(error: ApiError): Refusal | null {
  if (error.status === 403) return { field: 'oldPassword', text: t('account.wrongPassword') };
  if (isWrong(error, 'newPassword'))
    return { field: 'newPassword', text: t('signIn.passwordHint') };
  return null;
}

function EmailPanel() {
  const [askedFor, setAskedFor] = useState('');
  const form = useForm(async (values, element) => {
    const email = textOf(values, 'email').trim();
    await changeEmail({ email, password: textOf(values, 'password') });
    element.reset();
    setAskedFor(email);
  }, explainEmail);
  const email = accountOf()?.email ?? '';
  const hasMail = session.value.state === 'open' && session.value.view.mail;
  return (
    <section class="panel" aria-labelledby="change-email">
      <h3 id="change-email">{t('account.changeEmail')}</h3>
      <p class="fine account-note">
        {hasMail ? t('account.changeEmailHint', { email }) : t('account.noMailForEmail', { email })}
      </p>
      {hasMail && (
        <Form form={form}>
          {askedFor !== '' && (
            <p class="form-done" role="status">
              {t('account.emailAsked', { email: askedFor })}
            </p>
          )}
          <Field
            form={form}
            name="email"
            label={t('account.newEmail')}
            input={{ ...emailInput, autocomplete: 'email' }}
          />
          <PasswordField form={form} label={t('signIn.password')} prefix="email-" />
          <div>
            <Submit form={form}>{t('account.askEmail')}</Submit>
          </div>
        </Form>
      )}
    </section>
  );
}

function explainEmail(error: ApiError): Refusal | null {
  if (error.status === 403) return { field: 'password', text: t('account.wrongPassword') };
  return isWrong(error, 'email') ? { field: 'email', text: t('signIn.badEmail') } : null;
}
