import { useState } from 'preact/hooks';
import { t } from '../text/t.ts';
import { Field } from './form.tsx';
import type { FormState } from './use-form.ts';

type PasswordProps = {
  form: FormState;
  name?: string;
  label: string;
  /** A password that is chosen here: what it needs is said, and browsers offer to make one. */
  isNew?: boolean;
  prefix?: string;
};

/** A password that can be looked at. */
export function PasswordField({ form, name = 'password', label, isNew, prefix }: PasswordProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <Field
      form={form}
      name={name}
      label={label}
      {...(prefix === undefined ? {} : { prefix })}
      {...(isNew ? { hint: t('signIn.passwordHint') } : {})}
      input={{
        type: isShown ? 'text' : 'password',
        autocomplete: isNew ? 'new-password' : 'current-password',
        autocapitalize: 'off',
        spellcheck: false,
        required: true,
        ...(isNew ? { minLength: 8, maxLength: 128 } : {}),
      }}
    >
      <button
        type="button"
        class="button"
        aria-label={t(isShown ? 'signIn.hidePassword' : 'signIn.showPassword')}
        onClick={() => setIsShown(!isShown)}
      >
        {t(isShown ? 'common.hide' : 'common.reveal')}
      </button>
    </Field>
  );
}
