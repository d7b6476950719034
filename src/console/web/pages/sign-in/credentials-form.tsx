import type { ApiError } from '../../api/request.ts';
import type { Credentials } from '../../api/session.ts';
import { emailInput, Field, Form, Submit } from '../../parts/form.tsx';
import { PasswordField } from '../../parts/password-field.tsx';
import { isWrong, textOf, useForm, type Refusal } from '../../parts/use-form.ts';
import { t } from '../../text/t.ts';

// Other pages take it from here.
export { textOf } from '../../parts/use-form.ts';

type FormProps = { isNew: boolean; submit: (credentials: Credentials) => Promise<void> };

/** E-mail address and password, to sign in or to make an account. */
export function CredentialsForm({ isNew, submit }: FormProps) {
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
        input={{ ...emailInput, autocomplete: 'username', autofocus: true }}
      />
      <PasswordField form={form} label={t('signIn.password')} isNew={isNew} />
      <Submit form={form}>{t(isNew ? 'signIn.register' : 'signIn.enter')}</Submit>
    </Form>
  );
}

/** Which of the two is wrong is not said, for strangers try addresses. */
function explainWrong({ status }: ApiError): Refusal | null {
  return status === 401 ? { field: 'password', text: t('signIn.wrong') } : null;
}

function explainNew(error: ApiError): Refusal | null {
  if (error.status === 409) return { field: 'email', text: t('signIn.taken') };
  if (isWrong(error, 'email')) return { field: 'email', text: t('signIn.badEmail') };
  if (isWrong(error, 'password')) return { field: 'password', text: t('signIn.passwordHint') };
  return null;
}
