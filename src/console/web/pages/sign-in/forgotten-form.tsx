import { useState } from 'preact/hooks';
import type { ApiError } from '../../api/request.ts';
import { forgotPassword } from '../../api/session.ts';
import { emailInput, Field, Form, Submit } from '../../parts/form.tsx';
import { isWrong, textOf, useForm, type Refusal } from '../../parts/use-form.ts';
import { t } from '../../text/t.ts';

/** Asks for a mail with a link; the answer does not tell whether there is such an account. */
export function ForgottenForm() {
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
