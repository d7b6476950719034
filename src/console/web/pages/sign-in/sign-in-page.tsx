import { useState } from 'preact/hooks';
import { type Credentials, forgotPassword } from '../../api/account.ts';
import type { ApiError } from '../../api/request.ts';
import type { SessionView } from '../../api/types.ts';
import { Preferences } from '../../app/preferences.tsx';
import { enter, enterNew } from '../../app/session.ts';
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
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { t } from '../../text/t.ts';
export { textOf } from '../../parts/form.tsx';

type Mode = 'sign-in' | 'register' | 'forgotten';
type View = Omit<SessionView, 'timestamp'>;

/** The sign-in page; if no account exists yet, it creates the first one. */
export function SignInPage({ view }: { view: View }) {
  const { firstRun, openRegistration, mail } = view;
  const [mode, setMode] = useState<Mode>(firstRun && openRegistration ? 'register' : 'sign-in');
  const others: Mode[] = [
    ...(mode === 'sign-in' ? [] : (['sign-in'] as const)),
    ...(openRegistration && mode === 'sign-in' ? (['register'] as const) : []),
    ...(mail && mode === 'sign-in' ? (['forgotten'] as const) : []),
  ];
  return (
    <main class="gate">
      <div class="gate-card">
        <p class="brand">
          <span class="brand-mark">
            <Icon name="pulse" />
          </span>
          {t('app.name')}
        </p>
        <h1>{titleOf(mode, firstRun)}</h1>
        <p class="gate-hint">{hintOf(mode, firstRun)}</p>
        <FormOfMode key={mode} mode={mode} />
        {others.length > 0 && (
          <p class="gate-others">
            {others.map((other) => (
              <button key={other} type="button" class="link" onClick={() => setMode(other)}>
                {t(linkTexts[other])}
              </button>
            ))}
          </p>
        )}
      </div>
      <Preferences />
    </main>
  );
}

/**
 * The session has ended elsewhere, or was too old. The page stays behind, with what was typed in it; only a
 * button drops that.
 */
export function SessionEnded({ email, onLeave }: { email: string; onLeave: () => void }) {
  return (
    <Dialog title={t('signIn.ended')}>
      <p class="gate-hint">{t('signIn.endedHint')}</p>
      <CredentialsForm isNew={false} submit={enter} prefix="again-" email={email} />
      <p class="gate-others">
        <button type="button" class="link" onClick={onLeave}>
          {t('signIn.leave')}
        </button>
      </p>
    </Dialog>
  );
}

const linkTexts = {
  'sign-in': 'signIn.toSignIn',
  register: 'signIn.toRegister',
  forgotten: 'signIn.forgotten',
} as const;

function FormOfMode({ mode }: { mode: Mode }) {
  if (mode === 'forgotten') return <ForgottenForm />;
  const isNew = mode === 'register';
  return <CredentialsForm isNew={isNew} submit={isNew ? enterNew : enter} />;
}

function titleOf(mode: Mode, firstRun: boolean): string {
  if (mode === 'forgotten') return t('signIn.forgottenTitle');
  if (mode === 'sign-in') return t('signIn.title');
  return t(firstRun ? 'signIn.welcome' : 'signIn.registerTitle');
}

function hintOf(mode: Mode, firstRun: boolean): string {
  if (mode === 'forgotten') return t('signIn.forgottenHint');
  return t(mode === 'register' && firstRun ? 'signIn.welcomeHint' : 'signIn.about');
}

/** Requests a mail with a link; the answer does not reveal whether the account exists. */
function ForgottenForm() {
  const [sentTo, setSentTo] = useState('');
  const form = useForm(async (values) => {
    const email = textOf(values, 'email').trim();
    await forgotPassword(email);
    setSentTo(email);
  }, explain);
  if (sentTo !== '')
    return (
      <p class="form-done" role="status">
        {t('signIn.mailSent', { email: sentTo })}
      </p>
    );
  return (
    <Form form={form}>
      <Field
        form={form}
        name="email"
        label={t('signIn.email')}
        input={{ ...emailInput, autocomplete: 'username', autofocus: true }}
      />
      <Submit form={form}>{t('signIn.sendMail')}</Submit>
    </Form>
  );
}

function explain(error: ApiError): Refusal | null {
  return isWrong(error, 'email') ? { field: 'email', text: t('signIn.badEmail') } : null;
}

// Other pages take it from here.

type FormProps = {
  isNew: boolean;
  submit: (credentials: Credentials) => Promise<void>;
  /** Makes identifiers unique beside another form. */
  prefix?: string;
  /** Whose session has ended. */
  email?: string;
};

/** E-mail address and password, to sign in or to create an account. */
function CredentialsForm({ isNew, submit, prefix = '', email }: FormProps) {
  const form = useForm(
    (values) =>
      submit({ email: textOf(values, 'email').trim(), password: textOf(values, 'password') }),
    isNew ? explainNew : explainWrong,
  );
  return (
    <Form form={form}>
      <Field
        form={form}
        name="email"
        label={t('signIn.email')}
        prefix={prefix}
        input={{
          ...emailInput,
          autocomplete: 'username',
          ...(email === undefined ? { autofocus: true } : { defaultValue: email }),
        }}
      />
      <PasswordField form={form} label={t('signIn.password')} isNew={isNew} prefix={prefix} />
      <Submit form={form}>{t(isNew ? 'signIn.register' : 'signIn.enter')}</Submit>
    </Form>
  );
}

/** Does not say which of the two is wrong, because strangers try addresses. */
function explainWrong({ status }: ApiError): Refusal | null {
  return status === 401 ? { field: 'password', text: t('signIn.wrong') } : null;
}

function explainNew(error: ApiError): Refusal | null {
  if (error.status === 409) return { field: 'email', text: t('signIn.taken') };
  if (isWrong(error, 'email')) return { field: 'email', text: t('signIn.badEmail') };
  if (isWrong(error, 'password')) return { field: 'password', text: t('signIn.passwordHint') };
  return null;
}
